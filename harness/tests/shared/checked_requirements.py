"""A check as a user calls it, as the requirements that bind and fail."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from httpmark.harness.catalogue import loading
from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.judging.requirement_verdicts import showing
from httpmark.harness.model.cases import Level, Requirement
from httpmark.harness.model.verdicts import Word
from httpmark.harness.tests.shared import command_process

# A check that is this long under way hangs.
_CHECK_S = 280
# What a check says of a target that was judged: the gate passed, or failed.
_JUDGED = (0, 1)
_TOLD, _FOUND = "told.txt", "found.json"
_UNDECIDED = {Word.VOID, Word.UNSTABLE}


@functools.cache
def catalogue() -> Catalogue:
    """The catalogue that the command uses."""
    return loading.load()


def failing(folder: Path, serve: str, *options: str, seconds: float = _CHECK_S) -> set[str]:
    """The requirements of level MUST and the controls that a server fails.

    :param folder: empty, or not there yet; what the command prints is left in it, for
        :func:`told`.
    """
    folder.mkdir(exist_ok=True)
    found = folder / _FOUND
    code, out, errors = command_process.run(
        "check", "--serve", serve, *options, "--json", str(found), "--out", str(folder / "run"),
        cwd=folder, timeout=seconds,
    )  # fmt: skip
    (folder / _TOLD).write_text(out + errors, "utf-8")
    assert code in _JUDGED, f"exit code {code}\n{out}{errors}"
    return failed(found)


def told(folder: Path) -> str:
    """What the check in a folder printed: the bytes behind each failure."""
    return (folder / _TOLD).read_text("utf-8")


def shown_by(folder: Path, ids: Iterable[str]) -> str:
    """The cases of requirements that failed in the check in a folder: what each wanted, and got.

    A line each, of single cases and of the first failures of each generated family.
    """
    wanted = set(ids)
    server = json.loads((folder / _FOUND).read_text("utf-8"))["servers"][0]
    return "\n".join(
        f"{verdict['case']}: wanted {verdict['expected']}; came {verdict['actual']}"
        for suite in server["compliance"]["suites"].values()
        for name, verdict in _verdicts(suite)
        if verdict["word"] == Word.FAIL and any(may_show(name, id) for id in wanted)
    )


def _verdicts(suite: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from suite["cases"].items()
    for name, found in suite["generated"].items():
        yield from ((name, one) for one in found["failures"])


def failed(result: Path) -> set[str]:
    """The requirements of level MUST and the controls that failed in a run."""
    return {id for id, word in _words(result) if word == Word.FAIL and _binds(id)}


def undecided(folder: Path) -> set[str]:
    """The requirements that the check in a folder could not decide."""
    return {id for id, word in _words(folder / _FOUND) if word in _UNDECIDED}


def _words(result: Path) -> Iterator[tuple[str, str]]:
    server = json.loads(result.read_text("utf-8"))["servers"][0]
    for suite in server["compliance"]["suites"].values():
        yield from suite["requirements"].items()


def _binds(id: str) -> bool:
    row = _row(id)
    # What no requirement names is told by group and level, as tgt/must.
    level = row.level if row is not None else Level(id.rpartition("/")[2].upper())
    return level.is_binding


def _row(id: str) -> Requirement | None:
    return next((row for row in catalogue().requirements if row.id == id), None)


def may_show(case: str, id: str) -> bool:
    """Whether a case can show that a requirement is broken: it is one of its cases, or its answer
    is looked at as every answer is."""
    family = catalogue().families[case]
    row = _row(id)
    if row is None:
        return id.partition("/")[0] == family.group.lower()
    on_every_answer = any(selector.startswith("RESP-") for selector in row.cases)
    return on_every_answer or showing(row)(family.refs or (family.ref,), family.group)
