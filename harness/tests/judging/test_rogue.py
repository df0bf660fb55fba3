"""The judge judged: a conforming server passes every case, and each planted bug is caught."""

from __future__ import annotations

import ast
import concurrent.futures
from collections.abc import Iterator
from pathlib import Path

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.catalogue.catalogue import Catalogue, Planned
from httpmark.harness.tests.shared import rogue, rogue_matrix


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


def test_the_unmodified_rogue_passes_all_but_what_is_explained(planned: list[Planned]) -> None:
    assert rogue_matrix.changed(None, planned) == []


Found = dict[str, concurrent.futures.Future[list[str]]]


@pytest.fixture(scope="module")
def found(planned: list[Planned], request: pytest.FixtureRequest) -> Iterator[Found]:
    """What each bug that is asked for changes of all cases, several bugs at once."""
    asked = [getattr(item, "callspec", None) for item in request.session.items]
    bugs = {one.params["bug"]: None for one in asked if one is not None and "bug" in one.params}
    with concurrent.futures.ThreadPoolExecutor(rogue_matrix.JOBS) as pool:
        yield {bug: pool.submit(rogue_matrix.changed, bug, planned) for bug in bugs}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("bug", rogue.BUGS)
def test_a_bug_is_caught_by_the_cases_that_name_it_and_changes_what_is_kept(
    bug: str, known: Catalogue, planned: list[Planned], found: Found
) -> None:
    """The whole list of cases that see it is kept: one more, or one less, is news."""
    kept = rogue_matrix.golden(bug)
    lines = found[bug].result()
    if lines != kept:
        # A busy machine moves what hangs on time; a difference counts when it comes again.
        lines = rogue_matrix.changed(bug, planned)
    assert lines == kept
    selectors = rogue_matrix.NAMED[bug]
    checks = {selector for selector in selectors if selector.startswith("RESP-")}
    named = checks or {
        rogue_matrix.name(one) for one in rogue_matrix.select(known, planned, selectors)
    }
    worst = "> warn" if bug in rogue_matrix.NOTED_ONLY else "> fail"
    assert any(line.partition(":")[0] in named and line.endswith(worst) for line in lines), (
        rogue.BUGS[bug]
    )


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
