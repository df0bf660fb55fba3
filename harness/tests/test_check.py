"""Targets: which words name one, and what may not be tested without leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from httpmark.harness import check
from httpmark.harness.model import HarnessError, Word

from . import peers


@pytest.mark.parametrize(
    ("text", "address", "port", "host"),
    [
        ("http://127.0.0.1:8080/", "127.0.0.1", 8080, "127.0.0.1:8080"),
        ("127.0.0.1:8080", "127.0.0.1", 8080, "127.0.0.1:8080"),
        ("http://localhost/", "127.0.0.1", 80, "localhost"),
        ("http://[::1]:81/x", "::1", 81, "[::1]:81"),
        ("http://127.9.9.9:1", "127.9.9.9", 1, "127.9.9.9:1"),
    ],
)
def test_a_target_is_read(text: str, address: str, port: int, host: str) -> None:
    assert check.address(text, allow_remote=False) == check.Address(address, port, host)


@pytest.mark.parametrize("text", ["http://192.0.2.1/", "example.org:80", "http://10.0.0.1:8080/"])
def test_another_machine_needs_leave(text: str) -> None:
    with pytest.raises(HarnessError, match="--allow-remote"):
        check.address(text, allow_remote=False)
    assert check.address(text, allow_remote=True).port in (80, 8080)


@pytest.mark.parametrize(
    "text", ["unix:", "http://127.0.0.1:99999/", "http://:80/", "ftp://127.0.0.1/"]
)
def test_what_is_no_target_is_said(text: str) -> None:
    with pytest.raises(HarnessError):
        check.address(text, allow_remote=True)


class Said:
    """Events that nobody hears."""

    def say(self, line: str) -> None: ...

    def task(self, name: str, total: int) -> None: ...

    def advance(self, name: str, by: int) -> None: ...

    def done(self, name: str, result: str) -> None: ...


def test_a_selection_without_a_must_has_no_score_and_is_judged(tmp_path: Path) -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        options = check.Options(
            target=f"127.0.0.1:{peer.port}", suites=("resilience",), cases=("ROB-07",),
            out=tmp_path / "run",
        )  # fmt: skip
        result = check.Checker(options, Said()).check()
    found = result.servers[0].compliance.suites["resilience"]
    assert found.score_percent is None
    assert found.cases["markup-in-every-place"].word is Word.PASS
