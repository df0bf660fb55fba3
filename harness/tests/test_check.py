"""Targets: which words name one, and what may not be tested without leave."""

from __future__ import annotations

from pathlib import Path

from httpmark.harness import check
from httpmark.harness.model import Word

from . import peers


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
