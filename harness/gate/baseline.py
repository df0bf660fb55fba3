"""The baseline: known failures, each with a reason, in a file that may only shrink.

A baseline is TOML (or JSON of the same shape), checked in beside the project::

    [[expected]]
    id = "path_pct_pair"     # of a case, or of a generated family
    outcome = "accepted"     # how it fails, as the output says it; "any" for whatever way
    at_most = 11440          # of a generated family: how many of its requests
    reason = "the router decodes leniently until version 3"
    issue = "https://example.org/issues/7"   # optional
    expires = 2027-03-01                     # optional: from this day on it fails again
    server = "target"                        # optional: of one server only

A failure that is listed, and fails as listed, is expected and does not fail the gate. A listed
failure that passes, or only warns, is reported; in strict mode it fails the gate. Everything else
fails it: a failure that is not listed, that fails in another way or more often, whose entry has
expired, or whose entry does not say how many requests of a family may fail. An outcome that is
listed without the part after a semicolon matches every such part; ``"fail"``, from older files,
matches any outcome. The rules are those of test expectations in browsers, and of pytest's
``xfail_strict``.
"""

from __future__ import annotations

import collections
import datetime
import difflib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from httpmark.harness.gate.findings import Excuse, Finding, Status
from httpmark.harness.http.printable import one_line
from httpmark.harness.judging import failure_modes
from httpmark.harness.model import toml_text
from httpmark.harness.model.errors import HarnessError

_HEADER = re.compile(r"^\s*\[\[\s*expected\s*\]\]\s*(?:#.*)?$")
_TABLE = re.compile(r"^\s*\[")
_AT_MOST = re.compile(r"^(\s*at_most\s*=\s*)[0-9_]+")
_OUTCOME = re.compile(r"^\s*outcome\s*=")


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One failure that is known; the keys of a baseline file."""

    id: str
    outcome: str
    reason: str
    server: str | None = None
    at_most: int | None = None
    issue: str = ""
    expires: datetime.date | None = None


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A baseline file as written."""

    expected: list[Entry] = []


class Baseline(msgspec.Struct, frozen=True):
    """A baseline that was read, with the line on which each entry begins."""

    path: Path
    text: str
    entries: tuple[Entry, ...]
    lines: tuple[int, ...]

    def of(self, finding: Finding) -> int | None:
        """The entry that speaks of a finding, as its index; one that names the server first."""
        for server in (finding.server, None):
            for at, entry in enumerate(self.entries):
                if (entry.id, entry.server) == (finding.id, server):
                    return at
        return None


def read(path: Path, *, known: Mapping[str, str]) -> Baseline:
    """Read a baseline.

    :param known: every id that can be listed, with its number in the catalogue.
    :raises HarnessError: it cannot be read, an entry is wrong, twice there, or of an unknown id.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise HarnessError(
            f"{path}: {error.strerror}: give a baseline that exists, or make one with "
            "--allow-growth REASON"
        ) from None
    except UnicodeDecodeError:
        raise HarnessError(f"{path}: not UTF-8: save it as UTF-8") from None
    return _parsed(path, text, known)


def opened(
    path: Path | None, *, known: Mapping[str, str], update: bool, growth: str | None, strict: bool
) -> Baseline | None:
    """The baseline that the command's options name; None where they name none. A file that does not
    exist excuses nothing: the first check of a project has none yet.

    :raises HarnessError: as :func:`read`, or an option that needs a baseline stands alone.
    """
    if path is None:
        for option, given in (
            ("--update", update), ("--allow-growth", growth is not None),
            ("--strict-baseline", strict),
        ):  # fmt: skip
            if given:
                raise HarnessError(f"{option} needs --baseline FILE")
        return None
    if (growth is not None or not update) and not path.exists():
        return empty(path)
    return read(path, known=known)


def changed(
    baseline: Baseline,
    found: Sequence[Finding],
    *,
    update: bool,
    growth: str | None,
    known: Mapping[str, str],
    whole: bool = True,
) -> tuple[Baseline, tuple[str, ...]]:
    """Write the file anew as asked, smaller, larger or both; returns it and what was done.

    :param whole: whether the run came to its end: half a run proves no pass.
    :raises HarnessError: see :func:`shrink` and :func:`grow`; or it cannot be written.
    """
    done: list[str] = []
    text = baseline.text
    if not whole or any(finding.status is Status.UNUSABLE for finding in found):
        return baseline, ()
    if update:
        smaller = shrink(baseline, found)
        text, done = smaller.text, [*done, *smaller.done]
        baseline = _parsed(baseline.path, text, known)
    if growth is not None:
        larger = grow(baseline, found, reason=growth, known=known)
        text, done = larger.text, [*done, *larger.done]
    if done:
        try:
            baseline.path.write_text(text, "utf-8")
        except OSError as error:
            raise HarnessError(f"{baseline.path}: {error.strerror}: it was not changed") from None
    return _parsed(baseline.path, text, known), tuple(done)


def in_repository(path: Path) -> str:
    """A file as its repository names it, which is how code scanning and merge requests find it.

    Relative to the nearest folder above it that holds ``.git``, else to the working folder, else
    its name alone: a path of this machine means nothing to a reader elsewhere.
    """
    whole = Path(os.path.abspath(path))
    tops = [folder for folder in whole.parents if (folder / ".git").exists()][:1]
    for top in (*tops, Path.cwd()):
        if whole.is_relative_to(top):
            return whole.relative_to(top).as_posix()
    return whole.name


def lacking(path: Path, *, failed: bool) -> str:
    """What to say of a baseline that does not exist, so that nobody looks for a mistake in it."""
    told = f"{path} does not exist, so nothing is excused"
    if not failed:
        return f"{told}; nothing failed either"
    return f"{told}: add --allow-growth REASON once, to list today's failures in it"


def empty(path: Path) -> Baseline:
    """The baseline of a file that is still to be written."""
    return Baseline(path, "", (), ())


def _parsed(path: Path, text: str, known: Mapping[str, str] | None) -> Baseline:
    value = _value(path, text)
    listed = value.get("expected", [])
    lines = [at for at, line in enumerate(text.splitlines(), 1) if _HEADER.match(line)]
    if not isinstance(listed, list) or len(lines) != len(listed):
        lines = [1] * (len(listed) if isinstance(listed, list) else 0)
    entries = []
    unknown = sorted(set(value) - set(File.__struct_fields__))
    if unknown:
        raise HarnessError(f"{path}: unknown key {unknown[0]!r}: the entries are [[expected]]")
    if not isinstance(listed, list):
        raise HarnessError(f"{path}: expected must be a list of tables: write [[expected]]")
    for line, words in zip(lines, listed, strict=True):
        where = f"{path}, line {line}" if path.suffix != ".json" else f"{path}, {words!r:.60}"
        entry = _entry(where, words)
        if known is not None and entry.id not in known:
            raise HarnessError(f"{where}: {_unknown(entry.id, known)}")
        entries.append(entry)
    twice = collections.Counter((entry.server, entry.id) for entry in entries)
    for at, entry in enumerate(entries):
        if twice[entry.server, entry.id] > 1:
            raise HarnessError(
                f"{path}, line {lines[at]}: {entry.id} is listed twice: remove one entry"
            )
    return Baseline(path, text, tuple(entries), tuple(lines))


def _value(path: Path, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text) if path.suffix == ".json" else toml_text.tables(text)
    except RecursionError:  # of JSON; TOML says it itself
        raise HarnessError(f"{path}: not valid JSON: nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits is one, too
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise HarnessError(f"{path}: not valid {kind}: {error}") from None
    if not isinstance(value, dict):
        raise HarnessError(f'{path}: write {{"expected": [...]}}')
    return value


def _entry(where: str, words: Any) -> Entry:
    if isinstance(words, dict):
        for key in words:
            if key not in Entry.__struct_fields__:
                near = difflib.get_close_matches(key, Entry.__struct_fields__, 1)
                hint = f"did you mean {near[0]}?" if near else "see docs/gate.md"
                raise HarnessError(f"{where}: unknown key {key!r}: {hint}")
    try:
        entry = msgspec.convert(words, Entry)
    except msgspec.ValidationError as error:
        raise HarnessError(f"{where}: {error}") from None
    if not entry.reason.strip():
        raise HarnessError(f"{where}: {entry.id} has no reason: say why it may fail")
    if entry.at_most is not None and entry.at_most < 1:
        raise HarnessError(f"{where}: at_most must be 1 or more; else remove {entry.id}")
    return entry


def _unknown(id: str, known: Mapping[str, str]) -> str:
    for slug, ref in known.items():
        if ref and id == ref:
            return f"{id} is a number of the catalogue: write the id {slug}"
    for slug in sorted(known, key=len, reverse=True):
        if id.startswith(f"{slug}-"):
            return f"unknown id {id!r}: write {slug} (an entry is for a whole generated family)"
    near = difflib.get_close_matches(id, list(known), 1)
    hint = f"did you mean {near[0]}?" if near else "`httpmark list cases` shows all"
    return f"unknown id {id!r}: {hint}"


# --- holding findings against it ------------------------------------------------------------------


def hold(
    found: Iterable[Finding], baseline: Baseline, *, today: datetime.date, strict: bool = False
) -> tuple[Finding, ...]:
    """The findings as the baseline lets them stand.

    :param strict: an unexpected pass fails.
    """
    return tuple(_held(finding, baseline, today, strict) for finding in found)


def _held(finding: Finding, baseline: Baseline, today: datetime.date, strict: bool) -> Finding:
    replace = msgspec.structs.replace
    at = baseline.of(finding)
    if at is None:
        return replace(finding, excuse=Excuse(state="new")) if finding.fails else finding
    entry = baseline.entries[at]

    def excuse(state: str, told: str = "") -> Excuse:
        return Excuse(
            told=told,
            state=state,
            reason=entry.reason,
            issue=entry.issue,
            file=in_repository(baseline.path),
            line=baseline.lines[at],
        )

    if finding.status in _STALE:
        does = "passes" if finding.status is Status.PASSED else "no longer fails"
        told = f"{does}, but the baseline lists it: remove it, or run check with --update"
        return replace(
            finding,
            status=Status.FAILED if strict else finding.status,
            message=f"{finding.message}; {told}",
            excuse=excuse("absent", told),
        )
    if not finding.fails:
        return replace(finding, excuse=excuse("unchanged"))
    trouble = _trouble(finding, entry, today)
    if trouble is not None:
        return replace(
            finding,
            message=f"{finding.message}; {trouble}",
            excuse=excuse("updated", trouble),
        )
    return replace(
        finding,
        status=Status.EXPECTED if finding.status is Status.FAILED else finding.status,
        details=(*finding.details, f"expected: {entry.reason}"),
        excuse=excuse("unchanged"),
    )


_STALE = (Status.PASSED, Status.WARNED)  # what needs no excuse


def _trouble(finding: Finding, entry: Entry, today: datetime.date) -> str | None:
    """Why an entry does not excuse a failure."""
    if entry.expires is not None and today >= entry.expires:
        return f"its entry in the baseline expired on {entry.expires}"
    if not failure_modes.covers(entry.outcome, finding.outcome, family=finding.requests > 1):
        return f"fails as {finding.outcome!r}, but the baseline lists {entry.outcome!r}"
    if entry.at_most is None and finding.requests > 1:
        return (
            f"the baseline does not say how many may fail: write at_most = {finding.failures}, "
            "or run check with --update"
        )
    if entry.at_most is not None and finding.failures > entry.at_most:
        return f"{finding.failures} fail, but the baseline allows {entry.at_most}"
    return None


# --- the file, smaller ----------------------------------------------------------------------------


class Shrunk(msgspec.Struct, frozen=True):
    """A baseline's new text, and what was done to it in words."""

    text: str
    done: tuple[str, ...]


def shrink(baseline: Baseline, found: Sequence[Finding]) -> Shrunk:
    """Remove entries that pass or only warn, lower at_most where fewer requests fail, and set it
    where a family has none. Nothing else is touched.

    :param found: findings before :func:`hold`. An entry whose subject was not judged stays.
    :raises HarnessError: the file is written in a way that only its author can edit.
    """
    about: dict[int, list[Finding]] = {}
    for finding in found:
        at = baseline.of(finding)
        if at is not None:
            about.setdefault(at, []).append(finding)
    gone: set[int] = set()
    lower: dict[int, int] = {}
    done: list[str] = []
    for at, subjects in sorted(about.items()):
        entry = baseline.entries[at]
        if all(subject.status in _STALE for subject in subjects):
            gone.add(at)
            passes = all(subject.status is Status.PASSED for subject in subjects)
            done.append(f"{entry.id}: {'passes' if passes else 'only warns'}, removed")
        elif all(subject.fails or subject.status is Status.PASSED for subject in subjects):
            most = max(subject.failures for subject in subjects)
            if entry.at_most is None and any(subject.requests > 1 for subject in subjects):
                lower[at] = most
                done.append(f"{entry.id}: at_most set to {most}")
            elif entry.at_most is not None and most < entry.at_most:
                lower[at] = most
                done.append(f"{entry.id}: at_most {entry.at_most} lowered to {most}")
    wanted = [
        msgspec.structs.replace(entry, at_most=lower.get(at, entry.at_most))
        for at, entry in enumerate(baseline.entries)
        if at not in gone
    ]
    if not done:
        return Shrunk(baseline.text, ())
    if baseline.path.suffix == ".json":
        return Shrunk(_json(wanted), tuple(done))
    return _sure(baseline, _edited(baseline, gone, lower), wanted, tuple(done))


def _sure(baseline: Baseline, text: str, wanted: Sequence[Entry], done: tuple[str, ...]) -> Shrunk:
    """An edited text, if it says what it is meant to say.

    :raises HarnessError: the file is written in a way that only its author can edit.
    """
    try:
        same = list(_parsed(baseline.path, text, None).entries) == list(wanted)
    except HarnessError:
        same = False
    if not same:
        raise HarnessError(
            f"{baseline.path}: cannot be edited safely, because it is not a plain list of "
            f"[[expected]] tables; make these changes by hand: {'; '.join(done)}"
        )
    return Shrunk(text, done)


def _edited(baseline: Baseline, gone: set[int], lower: Mapping[int, int]) -> str:
    """The TOML text without some entries: their lines, and the comments right above them."""
    lines = baseline.text.splitlines(keepends=True)
    kept = list(lines)
    for at, first in enumerate(baseline.lines):
        end = first
        while end < len(lines) and not _TABLE.match(lines[end]):
            end += 1
        if at in gone:
            while end > first and _comments(lines[end - 1]) and end < len(lines):
                end -= 1  # they speak of the next entry
            start = _begins(lines, first)
            kept[start:end] = [""] * (end - start)
        elif at in lower:
            for number in range(first - 1, end):
                if baseline.entries[at].at_most is not None:
                    kept[number] = _AT_MOST.sub(rf"\g<1>{lower[at]}", lines[number])
                elif _OUTCOME.match(lines[number]):
                    whole = lines[number].rstrip("\r\n")
                    kept[number] = f"{whole}\nat_most = {lower[at]}\n"
    return "".join(kept)


def _begins(lines: Sequence[str], first: int) -> int:
    """Where an entry begins whose header is line ``first``: with the comments right above it."""
    above = first - 1
    while above and _comments(lines[above - 1]):
        above -= 1
    return above or first - 1  # a comment on the first line speaks of the file


def _comments(line: str) -> bool:
    return line.lstrip().startswith("#")


# --- the file, larger: only when told, with a reason ----------------------------------------------


def grow(
    baseline: Baseline, found: Sequence[Finding], *, reason: str, known: Iterable[str]
) -> Shrunk:
    """List every failure that is not listed yet, each before the first id that is greater, so that
    a sorted file stays sorted; what is listed stays as it is.

    :param found: findings before :func:`hold`.
    :param known: the ids that can be listed; a score or a server cannot.
    :raises HarnessError: no reason is given, or only its author can edit the file.
    """
    if not reason.strip():
        raise HarnessError(
            "--allow-growth: give a reason, as in --allow-growth 'router is lenient'"
        )
    listable = set(known)
    new = [
        Entry(
            id=finding.id,
            outcome=finding.outcome or failure_modes.ANY,
            reason=reason,
            at_most=finding.failures if finding.requests > 1 else None,
        )
        for finding in found
        if finding.status is Status.FAILED
        and finding.id in listable
        and baseline.of(finding) is None
    ]  # fmt: skip
    done = tuple(f"{entry.id}: added" for entry in sorted(new, key=lambda one: one.id))
    if not new:
        return Shrunk(baseline.text, ())
    wanted: list[Entry] = list(baseline.entries)
    places: dict[int, list[Entry]] = {}  # by the entry they go before
    for entry in sorted(new, key=lambda one: one.id):
        places.setdefault(_place(baseline, entry), []).append(entry)
    for at, entries in sorted(places.items(), reverse=True):
        wanted[at:at] = entries
    if baseline.path.suffix == ".json":
        return Shrunk(_json(wanted), done)
    lines = baseline.text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    for at, entries in sorted(places.items(), reverse=True):
        last = at == len(baseline.entries)
        start = len(lines) if last else _begins(lines, baseline.lines[at])
        empty = not any(line.strip() for line in lines[:start])
        text = "\n".join(_toml(entry) for entry in entries)
        lines[start:start] = [text if empty or not last else f"\n{text}", "" if last else "\n"]
    plain = [msgspec.structs.replace(one, reason=one_line(one.reason)) for one in wanted]
    return _sure(baseline, "".join(lines), plain, done)


def _place(baseline: Baseline, entry: Entry) -> int:
    return next(
        (at for at, one in enumerate(baseline.entries) if one.id > entry.id), len(baseline.entries)
    )


def _toml(entry: Entry) -> str:
    pairs = [("id", entry.id), ("outcome", entry.outcome), ("reason", entry.reason)]
    # A TOML basic string takes JSON's escapes of what can be printed.
    lines = [f"{key} = {json.dumps(one_line(text), ensure_ascii=False)}" for key, text in pairs]
    if entry.at_most is not None:
        lines.insert(2, f"at_most = {entry.at_most}")
    return "\n".join(("[[expected]]", *lines)) + "\n"


def _json(entries: Iterable[Entry]) -> str:
    listed = [
        {key: value for key, value in msgspec.to_builtins(entry).items() if value not in (None, "")}
        for entry in entries
    ]
    return json.dumps({"expected": listed}, indent=1, ensure_ascii=False) + "\n"
