"""The WSGI application that several share, given chunks in the way that uWSGI has for them.

wsgi.input of uWSGI ends at Content-Length, and knows no chunks: its page "Chunked input API" has
a function of its own for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import uwsgi
import wsgi


class Chunks:
    """A content in chunks, as wsgi.input."""

    def read(self) -> bytes:
        return b"".join(iter(uwsgi.chunked_read, b""))


def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    if "HTTP_TRANSFER_ENCODING" not in environ:
        return wsgi.app(environ, start)
    environ["wsgi.input"] = Chunks()
    try:
        return wsgi.app(environ, start)
    except OSError:  # uWSGI finds the framing broken
        start("400 Bad Request", [("Content-Length", "0")])
        return []
