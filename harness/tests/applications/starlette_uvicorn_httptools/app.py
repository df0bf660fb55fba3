"""An application as Starlette's documentation writes it: a page, and a note that is posted."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route


async def page(request: Request) -> PlainTextResponse:
    return PlainTextResponse("Hello, world!")


async def keep(request: Request) -> JSONResponse:
    return JSONResponse({"bytes": len(await request.body())}, status_code=201)


app = Starlette(routes=[Route("/", page), Route("/notes", keep, methods=["POST"])])
