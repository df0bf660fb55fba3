"""Sanic as a server: one handler for all paths, which repairs and refuses nothing."""

from __future__ import annotations

import asyncio

import answers
from sanic import HTTPResponse, Request, Sanic
from sanic.constants import HTTP_METHODS

app = Sanic("httpmark")


async def answer(request: Request) -> answers.Answer:
    path = request.path
    if path == "/early":
        return answers.hello()
    await request.receive_body()
    content = request.body
    if path == "/body":
        return answers.body(content)
    if path == "/echo":
        return answers.echo(request.query_string)
    if path == "/mirror":
        fields = [
            (name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape"))
            for name, value in request.headers.items()
        ]
        return answers.mirror(
            method=request.method.encode("latin-1"),
            target=request.raw_url,
            version=b"HTTP/" + request.version.encode("latin-1"),
            content=content,
            fields=fields,
        )
    if path == "/slow":
        await asyncio.sleep(answers.SLOW_S)
    return answers.behave(path, request.method)


async def handle(request: Request, path: str = "") -> HTTPResponse:
    status, fields, content = await answer(request)
    return HTTPResponse(content, status, fields)


for where in ("/", "/<path:path>"):
    app.add_route(handle, where, HTTP_METHODS, name=f"all{len(where)}", stream=True)
