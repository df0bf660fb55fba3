"""Answers as bytes: any response, and the mirror's."""

from __future__ import annotations

import base64
import json


def answer(status: int = 200, content: bytes = b"", *fields: str, close: bool = False) -> bytes:
    lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(content)}", *fields]
    if close:
        lines.append("Connection: close")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def shown(
    target: str = "/mirror",
    method: str = "GET",
    content: bytes = b"",
    fields: tuple[tuple[bytes, bytes], ...] = ((b"Host", b"a:1"),),
    trailers: tuple[tuple[bytes, bytes], ...] = (),
    authority: str | None = "a:1",
    *,
    close: bool = False,
) -> bytes:
    """The mirror's answer."""

    def text(octets: bytes) -> str:
        return base64.b64encode(octets).decode()

    value = {
        "method": text(method.encode()),
        "target": text(target.encode()),
        "authority": None if authority is None else text(authority.encode()),
        "version": text(b"HTTP/1.1"),
        "content": text(content),
        "fields": [[text(n), text(v)] for n, v in fields],
        "trailers": [[text(n), text(v)] for n, v in trailers],
        "request_number": 1,
    }
    return answer(200, json.dumps(value).encode(), close=close)
