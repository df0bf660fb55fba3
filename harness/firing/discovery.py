"""What a target can do, found by asking: one question for each capability (docs/contract.md).

A target that the user started declares nothing. A manifest (``--manifest``) replaces the questions.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from httpmark.harness.firing import targets
from httpmark.harness.http import response_reader
from httpmark.harness.judging import observation

_DEADLINE_S = 2.0


def capabilities(target: targets.Target) -> tuple[str, ...]:
    """The capabilities that a running target shows.

    ``hello`` comes first and is taken for granted: the positive controls judge it.
    """
    return ("hello", *(name for name, shows in _QUESTIONS.items() if shows(target)))


def _ask(
    target: targets.Target, line: str, *fields: str, content: bytes = b""
) -> response_reader.Response | None:
    """The answer to one plain request; None if there is no well-formed one."""
    own = "".join(f"{field}\r\n" for field in (*fields, "Connection: close"))
    head = f"{line} HTTP/1.1\r\n{target.facts().host_lines}{own}\r\n".encode("latin-1")
    octets = target.ask(head + content, deadline_s=_DEADLINE_S)
    if not octets:
        return None
    method = line.partition(" ")[0].encode("latin-1")
    try:
        return response_reader.read_final(octets, method=method, ended=True)
    except (response_reader.Malformed, response_reader.Incomplete):
        return None


def _status(target: targets.Target, line: str) -> int | None:
    answer = _ask(target, line, *(("Content-Length: 0",) if line.startswith("POST") else ()))
    return None if answer is None else answer.status


def _body(target: targets.Target) -> bool:
    content = b"what is sent comes back"
    answer = _ask(
        target, "POST /body", f"Content-Length: {len(content)}",
        "Content-Type: application/octet-stream", content=content,
    )  # fmt: skip
    return answer is not None and answer.status == 200 and answer.content == content


def _mirror(target: targets.Target) -> bool:
    answer = _ask(target, "GET /mirror?a=1", "X-Asked: by httpmark")
    if answer is None or answer.status != 200:
        return False
    shown = observation.mirror(answer.content)
    return shown is not None and (shown.method, shown.target) == (b"GET", b"/mirror?a=1")


def _behave(target: targets.Target) -> bool:
    wanted = {
        "GET /404": 404,
        "GET /get-only": 200,
        "POST /get-only": 405,
        "GET /204": 204,
        "GET /304": 304,
        "GET /redirect": 302,
        "GET /slow": 200,
        "GET /early": 200,
    }
    return all(_status(target, line) == status for line, status in wanted.items())


def _echo(target: targets.Target) -> bool:
    answer = _ask(target, "GET /echo?a=1&b=2")
    if answer is None or answer.status != 200:
        return False
    try:
        return bool(msgspec.json.decode(answer.content) == {"a": "1", "b": "2"})
    except msgspec.DecodeError:
        return False


def _websocket(target: targets.Target) -> bool:
    octets = target.ask(
        f"GET /websocket HTTP/1.1\r\n{target.facts().host_lines}Connection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode("latin-1"),
        deadline_s=0.5,
    )
    return bool(octets) and octets is not None and octets.startswith(b"HTTP/1.1 101 ")


_QUESTIONS: dict[str, Callable[[targets.Target], bool]] = {
    "body": _body,
    "mirror": _mirror,
    "behave": _behave,
    "echo": _echo,
    "websocket": _websocket,
}
