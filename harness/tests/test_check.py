"""Targets: which words name one, and what may not be tested without leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from httpmark.harness import check, gates
from httpmark.harness.model import Run, Word

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


def chosen(tmp_path: Path, handler: peers.Handler, *cases: str) -> Run:
    with peers.peer(handler) as peer:
        options = check.Options(
            target=f"127.0.0.1:{peer.port}", suites=("seed",), cases=cases, exclude=("CTRL",),
            out=tmp_path / "run",
        )  # fmt: skip
        return check.Checker(options, Said()).check()


def test_a_family_alone_is_scored_and_brings_its_controls(tmp_path: Path) -> None:
    result = chosen(tmp_path, peers.naive, "field_value_byte")
    found = result.servers[0].compliance.suites["seed"]
    assert list(found.families) == ["field_value_byte"]
    assert found.score_percent == 100.0
    assert found.controls is not None
    assert found.controls.passed > 1
    assert gates.exit_code(result, gates.findings(result), gate=gates.Gate()) == 0


def test_a_family_alone_is_not_scored_where_good_requests_are_refused(tmp_path: Path) -> None:
    result = chosen(tmp_path, peers.answering(peers.BAD), "field_value_byte")
    found = result.servers[0].compliance.suites["seed"]
    assert found.score_percent is None
    assert "positive controls failed" in (found.reason or "")


@pytest.mark.parametrize("handler", [peers.naive, peers.answering(peers.BAD)])
def test_controls_alone_are_judged(tmp_path: Path, handler: peers.Handler) -> None:
    with peers.peer(handler) as peer:
        options = check.Options(
            target=f"127.0.0.1:{peer.port}", suites=("seed",), cases=("CTRL",),
            out=tmp_path / "run",
        )  # fmt: skip
        result = check.Checker(options, Said()).check()
    code = gates.exit_code(result, gates.findings(result), gate=gates.Gate())
    assert code == (0 if handler is peers.naive else 3)
