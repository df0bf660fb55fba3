"""What a target can do, found by asking: one question for each capability (docs/contract.md).

A target that the user started declares nothing. A manifest (``--manifest``) replaces the questions.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from httpmark.harness.firing import targets
from httpmark.harness.http import response_reader
from httpmark.harness.judging import observation
from httpmark.harness.servers import sockets

_DEADLINE_S = 2.0


def capabilities(target: targets.Target) -> tuple[str, ...]:
    """The capabilities that a running target shows.

    ``hello`` comes first and is taken for granted: the positive controls judge it.
    """
    shown = [name for name, shows in _QUESTIONS.items() if shows(target)]
    parts = [name for name, shows in _PARTS.items() if shows(target)]
    if len(parts) == len(_PARTS):
        parts = ["behave"]
    return ("hello", *shown, *parts)


PATIENCE_S = 5.0  # for one plain answer to be whole


def without_end(target: targets.Target, answer: bytes) -> str | None:
    """Why a plain answer has no end that anybody would wait for; None where it has one.

    Each of a thousand questions would take as long, and show no more.

    :param answer: what a first question got in the time that it had.
    """
    if not _is_cut(answer):
        return None
    began = time.monotonic()
    longer = targets.hello(target, deadline_s=PATIENCE_S) or b""
    if not _is_cut(longer):
        return None
    if len(longer) >= sockets.ANSWER_BYTES_MAX:
        return f"its answer to GET {target.path} is longer than 1 MiB"
    if time.monotonic() - began >= PATIENCE_S:
        return f"it began to answer GET {target.path} and did not end within {PATIENCE_S:g} s"
    return None  # it was ended by a close


def cut_short(target: targets.Target) -> str | None:
    """Why a plain answer proves nothing: asked for twice, it began well and was not whole when the
    connection ended. None where it is whole, is silence, or is no HTTP at all.
    """
    for _ in range(2):
        answer = targets.hello(target, deadline_s=PATIENCE_S) or b""
        try:
            if response_reader.read_final(answer, ended=True).complete:
                return None
        except response_reader.Malformed:
            return None
        except response_reader.Incomplete:
            if not answer:
                return None
    return f"its answer to GET {target.path} is cut short"


def _is_cut(answer: bytes) -> bool:
    """Whether an answer began well and is not whole; one that only a close ends never is."""
    try:
        return not response_reader.read_final(answer, ended=False).complete
    except response_reader.Incomplete:
        return bool(answer)
    except response_reader.Malformed:
        return False


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


_BIG_BYTES = 1 << 20
_SLOW_S = 0.3  # /slow takes 500 ms; what comes much sooner is the answer of a handler for any path


def _slow(target: targets.Target) -> bool:
    began = time.monotonic()
    return _status(target, "GET /slow") == 200 and time.monotonic() - began >= _SLOW_S


def _big(target: targets.Target) -> bool:
    answer = _ask(target, "GET /big")
    return answer is not None and answer.status == 200 and len(answer.content) == _BIG_BYTES


def _answers(path: str, **wanted: int) -> Callable[[targets.Target], bool]:
    """A question: whether a path answers each of these methods with its status."""
    return lambda target: all(
        _status(target, f"{method} {path}") == status for method, status in wanted.items()
    )


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


def _events(target: targets.Target) -> bool:
    octets = target.ask(
        f"GET /events HTTP/1.1\r\n{target.facts().host_lines}\r\n".encode("latin-1"),
        deadline_s=0.5,
    )
    try:
        answer = response_reader.read_final(octets or b"", ended=False)
    except (response_reader.Incomplete, response_reader.Malformed):
        return False  # such as a stream without end, which is right for most applications
    kinds = b", ".join(answer.values(b"content-type"))
    return answer.status == 200 and answer.complete and kinds.startswith(b"text/event-stream")


_QUESTIONS: dict[str, Callable[[targets.Target], bool]] = {
    "body": _body,
    "mirror": _mirror,
    "echo": _echo,
    "websocket": _websocket,
    "events": _events,
}
# Each place of ``behave`` by itself: many servers have some of them.
_PARTS: dict[str, Callable[[targets.Target], bool]] = {
    "behave.slow": _slow,
    "behave.early": _answers("/early", GET=200),
    "behave.204": _answers("/204", GET=204),
    "behave.304": _answers("/304", GET=304),
    "behave.redirect": _answers("/redirect", GET=302),
    "behave.big": _big,
    "behave.404": _answers("/404", GET=404, HEAD=404, POST=404),
    "behave.get-only": _answers("/get-only", GET=200, POST=405),
}
