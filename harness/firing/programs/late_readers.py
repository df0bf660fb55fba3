"""Clients that read nothing until a server waits for them, and then everything."""

from __future__ import annotations

from collections.abc import Callable

from httpmark.harness.firing.programs.stage import Found, Stage
from httpmark.harness.http import response_reader
from httpmark.harness.model.verdicts import Word
from httpmark.harness.servers import websocket_echo
from httpmark.harness.servers.sockets import Ending, ReadLate

_QUIET_S = 0.3
_PATIENCE_ANSWERS = 4
_REQUESTS = 8  # for so much each: more than the kernel keeps
_ANSWER_BYTES = 1 << 20
_MESSAGES = 4000  # of 1,000 bytes
_MESSAGE_BYTES = 1000
_NO_TLS = Found(Word.NOT_APPLICABLE, "played without TLS only")


def late_reader(stage: Stage) -> Found:
    """Eight large answers, read only when the server waits for its client."""
    if stage.facts.scheme == "https":
        return _NO_TLS
    whole = 0
    at = 0

    def is_whole(received: bytearray) -> bool:
        nonlocal whole, at
        while whole < _REQUESTS and (end := _end_of_answer(received, at)) is not None:
            whole, at = whole + 1, end
        return whole == _REQUESTS

    read = _read(stage, stage.case.sent * _REQUESTS, is_whole, answers=_PATIENCE_ANSWERS)
    told = f"{whole} of {_REQUESTS} answers were whole, {len(read.received):,} bytes"
    if read.how is Ending.STUCK:
        return Found(Word.FAIL, f"{told}; nothing more came, and the server did not close")
    if read.how is Ending.CLOSED:
        return Found(Word.WARN if whole else Word.FAIL, f"{told}; then the server closed")
    return Found(Word.PASS, told)


def websocket_late_reader(stage: Stage) -> Found:
    """4 MB of messages, read only when the server waits for its client: all come back."""
    if stage.facts.scheme == "https":
        return _NO_TLS
    wanted, read = _echo(stage, [b"hello"], answers=1)
    if not read.opening.startswith(b"HTTP/1.1 101 "):
        return Found(Word.NOT_APPLICABLE, "the handshake got no 101")
    if read.received != wanted:
        return Found(Word.NOT_APPLICABLE, "a message does not come back as it was sent")
    messages = [(b"%d abcdefg" % number).ljust(_MESSAGE_BYTES, b".") for number in range(_MESSAGES)]
    wanted, read = _echo(stage, messages, answers=_PATIENCE_ANSWERS)
    if read.received == wanted:
        return Found(Word.PASS, f"all {_MESSAGES:,} messages came back")
    told = f"{len(read.received):,} of {len(wanted):,} bytes came back"
    if not wanted.startswith(read.received):
        return Found(Word.FAIL, f"{told}, not as they were sent")
    how = "the server closed" if read.how is Ending.CLOSED else "nothing more came"
    return Found(Word.FAIL, f"{told}; then {how}")


def _echo(stage: Stage, messages: list[bytes], *, answers: int) -> tuple[bytes, ReadLate]:
    """What is to come back for messages, and what does."""
    wanted = b"".join(websocket_echo.text_frame(one) for one in messages)
    sent = b"".join(websocket_echo.text_frame(one, is_masked=True) for one in messages)

    def is_whole(received: bytearray) -> bool:
        return len(received) >= len(wanted)

    return wanted, _read(stage, sent, is_whole, opening=stage.case.sent, answers=answers)


def _end_of_answer(received: bytearray, at: int) -> int | None:
    """Where the answer ends that begins at ``at``; None where it is not whole yet."""
    if len(received) - at < _ANSWER_BYTES:  # too soon to look at it
        return None
    reading = response_reader.read_on(bytes(received[at:]), 0, method=b"GET", ended=False)
    if reading is None or reading.cut or reading.lost:
        return None
    return at + reading.response.end


def _read(
    stage: Stage,
    octets: bytes,
    is_whole: Callable[[bytearray], bool],
    *,
    answers: int,
    opening: bytes = b"",
) -> ReadLate:
    """:param answers: without a byte for as long as so many answers may take, it is stuck."""
    patience_s = answers * stage.answer_ms / 1000
    return stage.read_late(octets, is_whole, _QUIET_S, patience_s, opening)
