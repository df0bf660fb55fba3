"""What is asked of a target before cases are sent, and what is asked once more for each suite."""

from __future__ import annotations

import time
from typing import cast

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.firing import discovery, first_questions
from httpmark.harness.firing.targets import Target
from httpmark.harness.model.cases import FILE_TEXT
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.made_answers import answer


class Files(Target, frozen=True, kw_only=True):
    """Serves static files; each start has another ETag, as of servers that make it of the inode."""

    started: list[str]

    def ask(self, octets: bytes, *, deadline_s: float) -> bytes | None:
        del deadline_s
        if b"/static/ok.html" not in octets:
            return answer(200)
        return answer(200, FILE_TEXT.encode(), f"ETag: {self.started[-1]}")


def test_the_files_are_asked_again_for_each_suite_as_each_start_plants_them_anew() -> None:
    target = cast(
        Target,
        Files(
            name="a", address="127.0.0.1", port=1, host="a", capabilities=("hello", "static"),
            slowest_ms=1, started=['"first"'],
        ),
    )  # fmt: skip
    first = first_questions.answered(loading.load(), (), target, None)
    known = first.facts()
    assert known.values["etag"] == '"first"'
    cast(Files, target).started.append('"second"')
    again = first_questions.answered(loading.load(), (), target, known)
    assert again.values["etag"] == '"second"'
    assert again.values["secret"] == known.values["secret"]


class NoHttp(Target, frozen=True, kw_only=True):
    """Something else than HTTP is spoken there; it counts what it is asked."""

    asked: list[bytes]

    def ask(self, octets: bytes, *, deadline_s: float) -> bytes | None:
        del deadline_s
        self.asked.append(octets)
        return b"SSH-2.0-server\r\n"


def test_who_speaks_no_http_is_asked_once_and_not_taken_for_a_slow_server() -> None:
    """Each question waits for an answer that never is whole, and would be waited for four times as
    long as that took."""
    target = NoHttp(name="a", address="127.0.0.1", port=1, host="a", asked=[])
    found = first_questions.answered(loading.load(), (), target, None)
    assert found.slowest_ms == 0
    assert len(target.asked) == 1


@pytest.mark.parametrize("rest", [b"Content-Length: 9\r\n\r\nhello", b"\r\nno close comes"])
def test_who_never_ends_an_answer_is_asked_no_more(
    rest: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_questions, "PLAIN_S", 0.2)
    monkeypatch.setattr(discovery, "PATIENCE_S", 0.3)
    with peers.peer(peers.answering(b"HTTP/1.1 200 OK\r\n" + rest)) as peer:
        target = Target(name="a", address="127.0.0.1", port=peer.port, host="a")
        began = time.monotonic()
        found = first_questions.answered(loading.load(), (), target, None)
    assert found.slowest_ms == 0
    assert time.monotonic() - began < 10
