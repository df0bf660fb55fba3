"""What a target can do, found by asking it."""

from __future__ import annotations

import time
from typing import cast

import pytest

from httpmark.harness.firing import discovery
from httpmark.harness.firing.targets import Target
from httpmark.harness.model.cases import Facts
from httpmark.harness.model.servers import PARTS_OF_BEHAVE
from httpmark.harness.tests.shared.made_answers import answer

BEHAVES = {
    "GET /early": answer(200),
    "GET /204": b"HTTP/1.1 204 x\r\n\r\n",
    "GET /304": b'HTTP/1.1 304 x\r\nETag: "a"\r\n\r\n',
    "GET /redirect": answer(302, b"", "Location: /hello"),
    "GET /big": answer(200, b"a" * (1 << 20)),
    "GET /404": answer(404),
    "HEAD /404": answer(404),
    "POST /404": answer(404),
    "GET /get-only": answer(200),
    "POST /get-only": answer(405, b"", "Allow: GET, HEAD"),
    "GET /slow": answer(200),
}


class Asked:
    """A target that answers as a table says, and else 404; only ``now`` goes on at /slow."""

    def __init__(self, answers: dict[str, bytes], otherwise: bytes, slow_s: float) -> None:
        self.answers, self.otherwise, self.slow_s, self.now = answers, otherwise, slow_s, 0.0

    def facts(self) -> Facts:
        return Facts(host="a")

    def ask(self, octets: bytes, *, deadline_s: float) -> bytes:
        line = octets.partition(b" HTTP/1.1\r\n")[0].decode()
        self.now += self.slow_s if line == "GET /slow" else 0.0
        return self.answers.get(line, self.otherwise)


def found(
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[str, bytes],
    otherwise: bytes = answer(404),
    slow_s: float = 0.5,
) -> set[str]:
    asked = Asked(answers, otherwise, slow_s)
    monkeypatch.setattr(time, "monotonic", lambda: asked.now)
    return set(discovery.capabilities(cast(Target, asked)))


def test_a_server_with_every_place_behaves(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, BEHAVES) == {"hello", "behave"}


@pytest.mark.parametrize("part", PARTS_OF_BEHAVE)
def test_a_server_that_lacks_one_place_has_the_others(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/" + part.removeprefix("behave.")
    answers = {line: said for line, said in BEHAVES.items() if line.partition(" ")[2] != path}
    wrong = answer(500)
    assert found(monkeypatch, answers, wrong) == {"hello", *PARTS_OF_BEHAVE} - {part}


def test_a_place_that_answers_any_path_at_once_is_not_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert found(monkeypatch, {}, answer(200), slow_s=0.001) == {"hello", "behave.early"}
    assert "behave.slow" not in found(monkeypatch, BEHAVES, slow_s=0.001)


def test_a_server_that_finds_nothing_has_a_place_that_is_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert found(monkeypatch, {}) == {"hello", "behave.404"}
    assert found(monkeypatch, {"HEAD /404": answer(405)}) == {"hello"}
