"""Twisted Web as a server: one resource for all paths, which repairs and refuses nothing."""

from __future__ import annotations

import answers
import forked

given = forked.words()
plain = forked.listener(given.address, given.port)
forked.fork(given.workers)

# Each worker has a reactor of its own, which begins where it is imported.
from twisted.internet import reactor  # noqa: E402
from twisted.internet.task import deferLater  # noqa: E402
from twisted.web import resource, server  # noqa: E402


def answer(request: server.Request) -> answers.Answer:
    content = request.content.read()
    path = request.path.decode("latin-1")
    if path == "/body":
        return answers.body(content)
    if path == "/echo":
        return answers.echo(request.uri.partition(b"?")[2].decode("latin-1"))
    if path == "/mirror":
        fields = request.requestHeaders.getAllRawHeaders()
        return answers.mirror(
            method=request.method, target=request.uri, version=request.clientproto, content=content,
            fields=[(name, value) for name, values in fields for value in values],
        )  # fmt: skip
    return answers.behave(path, request.method.decode("latin-1"))


class Everything(resource.Resource):
    isLeaf = True

    def render(self, request: server.Request) -> bytes | int:
        if request.path == b"/slow":
            deferLater(reactor, answers.SLOW_S, self.finish, request)
            return server.NOT_DONE_YET
        return self.write(request)

    def write(self, request: server.Request) -> bytes:
        status, fields, content = answer(request)
        request.setResponseCode(status)
        for name, value in fields:
            request.setHeader(name, value)
        return content

    def finish(self, request: server.Request) -> None:
        if request.channel is None:  # the client has gone
            return
        request.write(self.write(request))
        request.finish()


site = server.Site(Everything())
site.log = lambda request: None
reactor.adoptStreamPort(plain.fileno(), plain.family, site)
reactor.run()
