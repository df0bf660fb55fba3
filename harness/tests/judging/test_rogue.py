"""The judge judged: a conforming server passes every case, and each planted bug is caught."""

from __future__ import annotations

import ast
import concurrent.futures
import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.catalogue.catalogue import Catalogue, Planned
from httpmark.harness.tests.shared import repository, rogue, rogue_matrix
from httpmark.harness.tests.shared.asking_again import asked_again


@pytest.fixture(scope="module")
def known() -> Catalogue:
    return loading.load()


@pytest.fixture(scope="module")
def planned(known: Catalogue) -> list[Planned]:
    return rogue_matrix.plan(known)


def test_the_rogue_is_written_from_the_text_alone() -> None:
    """Judge and judged share no code: what they both had wrong, nobody would see."""
    tree = ast.parse(Path(rogue.__file__).read_text("utf-8"))
    names = [
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [n.name for n in node.names]
        )
    ]
    assert [name for name in names if "httpmark" in name] == []


def test_every_bug_has_cases_that_name_it_and_a_kept_list() -> None:
    assert rogue_matrix.NAMED.keys() == rogue.BUGS.keys()
    assert [bug for bug in rogue.BUGS if not rogue_matrix.golden(bug)] == []


def test_the_readme_says_how_many_bugs_there_are() -> None:
    readme = (repository.ROOT / "README.md").read_text("utf-8")
    assert f"a server that breaks one of {len(rogue.BUGS)} rules at a time" in readme


@pytest.mark.process
def test_the_unmodified_rogue_passes_all_but_what_is_explained(planned: list[Planned]) -> None:
    assert rogue_matrix.changed(None, planned) == []


@pytest.mark.first
@pytest.mark.process
def test_each_bug_is_caught_by_a_sample_of_the_cases_that_name_it(
    known: Catalogue, planned: list[Planned]
) -> None:
    """A few cases for each bug; all cases are played by the nightly test below."""

    def fault(bug: str) -> str | None:
        lines = rogue_matrix.changed(bug, rogue_matrix.sample_of(known, planned, bug))
        if not rogue_matrix.is_caught(bug, lines, rogue_matrix.names_of(known, planned, bug)):
            return f"{bug}, {rogue.BUGS[bug]}: not caught; seen: {lines}"
        news = set(lines) - set(rogue_matrix.golden(bug) or ())
        return f"{bug}: not in the kept list: {sorted(news)}" if news else None

    # Those that take longest begin first.
    bugs = sorted(rogue.BUGS, key=lambda bug: bug not in rogue_matrix.SLOW)
    with concurrent.futures.ThreadPoolExecutor(rogue_matrix.JOBS) as pool:
        faults = [told for told in pool.map(fault, bugs) if told is not None]
    assert not faults, "\n".join(faults)


AHEAD = 4 * rogue_matrix.JOBS


class Whole:
    """What bugs change of all cases. Those that are asked for next are played meanwhile.

    In processes of their own: pytest changes its environment between tests, and a thread that
    starts a program in that moment is told EFAULT.
    """

    def __init__(self) -> None:
        self._pool = concurrent.futures.ProcessPoolExecutor(
            rogue_matrix.JOBS, mp_context=multiprocessing.get_context("spawn")
        )
        self._runs: dict[str, concurrent.futures.Future[rogue_matrix.Changed]] = {}

    def lines(self, bug: str, asked: list[str]) -> list[str]:
        """:param asked: all bugs that are asked for, in order."""
        at = asked.index(bug)
        for one in asked[at : at + AHEAD]:
            if one not in self._runs:
                self._runs[one] = self._pool.submit(rogue_matrix.changed_of_all, one)
        found = self._runs[bug].result()
        for line in found.asked_again:
            asked_again.note(*line.split(": ", 1))
        return found.lines

    def stop(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def whole() -> Iterator[Whole]:
    runs = Whole()
    yield runs
    runs.stop()


@pytest.mark.nightly
@pytest.mark.process
@pytest.mark.parametrize("bug", rogue.BUGS)
def test_a_bug_changes_what_is_kept_and_nothing_else(
    bug: str,
    known: Catalogue,
    planned: list[Planned],
    whole: Whole,
    request: pytest.FixtureRequest,
) -> None:
    """The whole list of cases that see it is kept: one more, or one less, is news."""
    specs = [getattr(item, "callspec", None) for item in request.session.items]
    asked = [str(one.params["bug"]) for one in specs if one is not None and "bug" in one.params]
    kept = rogue_matrix.golden(bug)
    lines = whole.lines(bug, asked)
    if lines != kept:
        lines = rogue_matrix.changed_again(bug, planned, lines)
    assert lines == kept
    assert rogue_matrix.is_caught(bug, lines, rogue_matrix.names_of(known, planned, bug)), (
        rogue.BUGS[bug]
    )


@pytest.mark.process
def test_a_difference_from_the_kept_list_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], known: Catalogue
) -> None:
    some = [one for one in rogue_matrix.plan(known) if one.case.id == "absolute-form"]
    monkeypatch.setattr(rogue_matrix, "plan", lambda _, whole: some)
    monkeypatch.setattr(rogue_matrix, "golden", lambda _: ["target-root: pass > fail"])
    assert rogue_matrix.main(["B17"]) == 1
    told = capsys.readouterr().out
    assert "+ absolute-form: pass > fail" in told
    assert "- target-root: pass > fail" in told
