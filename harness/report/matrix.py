"""A run's conformance as a matrix: requirements by RFC section, servers as columns, and below each
row the cases that were no pass, with both sides of the wire.

Nothing is judged here: words come from the run, bytes from its evidence, rules from the catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from markupsafe import escape

from httpmark.harness.catalogue import expectation_words
from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.http import response_reader, shell_lines
from httpmark.harness.http.printable import page_bytes
from httpmark.harness.http.shell_lines import by_hand, command, fewer
from httpmark.harness.judging import requirement_verdicts
from httpmark.harness.judging.delivery_comparison import NOT_EARLY
from httpmark.harness.judging.evidence import kept_as
from httpmark.harness.judging.exchange_reader import ExchangeReader
from httpmark.harness.judging.response_rules.rule_table import RULES
from httpmark.harness.model.cases import Family, Level, Requirement
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.model.verdicts import SuiteResult, Verdict, Word
from httpmark.harness.report.delivery_table import family_of

SENT_BYTES_MAX = 300
RECEIVED_BYTES_MAX = 200
# Of all wire logs of a page together. For the other cases, the page names the command.
LOGS_BYTES_MAX = 90_000
# Of one check: every failing case is shown by itself, with all that a reader can take in.
WHOLE_BYTES_MAX = 4096  # of each message
_AROUND_BYTES = 160  # of markup, around each message

_NUMBERS = re.compile(r"RFC ([0-9]+)(?: ([0-9]+(?:\.[0-9]+)*))?")
_TOLD = (Word.FAIL, Word.UNSTABLE, Word.WARN, Word.VOID)
_SHOWN = (Word.FAIL, Word.UNSTABLE)
_BINDING_FIRST = (Level.MUST, Level.CTRL, Level.SHOULD, Level.SEC, Level.MAY, Level.INFO)


class Log(msgspec.Struct, frozen=True):
    """An answer to a case, from one or more servers. Their answers may differ in the date; shown is
    that of the first.
    """

    servers: tuple[str, ...]
    received: bytes
    size: int  # of the whole answer, in bytes
    outcome: str
    end: str
    own: int  # how many of the bytes answer the case itself; the others, the request after it


class Told(msgspec.Struct, frozen=True):
    """What came back from one or more servers, and the verdict on it."""

    servers: tuple[str, ...]
    word: Word
    actual: str


class CaseRow(msgspec.Struct, frozen=True):
    """A designed case, or a generated family, that at least one server did not pass, or that
    readers of the RFC read differently.
    """

    family: Family
    words: tuple[Word | None, ...]  # by server
    told: tuple[Told, ...]
    expected: str
    drawn_in: str | None = None  # the requirement under which it stands already
    shown: tuple[tuple[str, str], ...] = ()  # server, and the case that shows its failure
    sent: bytes = b""
    own: int = 0  # how many of the bytes are the case's own; the others are the request after it
    again: str = ""  # the line that sends it again
    logs: tuple[Log, ...] = ()
    suite: str = ""  # of the case that is shown

    @property
    def fails(self) -> bool:
        """Whether it is more than permitted."""
        return any(told.word in _SHOWN for told in self.told)

    @property
    def passed(self) -> bool:
        """Whether all passed: then it is told for its readings alone."""
        return all(told.word is Word.PASS for told in self.told)


class Row(msgspec.Struct, frozen=True):
    """A requirement: its verdict by server, and its cases that were no pass."""

    requirement: Requirement
    words: tuple[Word | None, ...]
    cases: tuple[CaseRow, ...]
    known: int  # how many entries show it
    left_out: int = 0  # cases that are no pass, and not told for want of room
    contested: tuple[bool, ...] = ()  # by server: it is only warned of, for contested cases alone
    apart: bool = False  # each case is shown by itself, those that were answered alike too

    @property
    def is_contested(self) -> bool:
        """Whether readers of the RFC differ on any of its cases that were fired."""
        return any(case.family.contested for case in self.cases)

    @property
    def not_passed(self) -> int:
        """How many of its cases at least one server did not pass."""
        return sum(not case.passed for case in self.cases) + self.left_out

    @property
    def without_bytes(self) -> bool:
        """Whether the bytes of a case listed here are left out of the page."""
        return any(same[0].shown and not same[0].sent for same in self.groups)

    @property
    def groups(self) -> tuple[tuple[CaseRow, ...], ...]:
        """The cases listed here; cases that each server answered alike form a group."""
        alike: dict[tuple[object, ...], list[CaseRow]] = {}
        key: tuple[object, ...]
        for case in self.cases:
            if case.drawn_in is None:
                family = case.family
                key = (case.fails, family.level, family.contested, case.expected, case.told)
                key = (*key, family.id) if self.apart else key
                alike.setdefault(key, []).append(case)
        return tuple(tuple(same) for same in alike.values())


class Matrix(msgspec.Struct, frozen=True):
    """The whole; ``sections`` are rows under the document they stand in."""

    servers: tuple[str, ...]
    must: tuple[dict[str, int], ...]  # by server: requirements by verdict
    scores: tuple[float | None, ...]
    sections: tuple[tuple[str, tuple[Row, ...]], ...]
    logs_left_out: int = 0
    whole: bool = False  # of one check: nothing is left out for want of room

    @property
    def bytes_max(self) -> tuple[int, int]:
        """How many bytes of what was sent, and of what came, are shown."""
        return (WHOLE_BYTES_MAX,) * 2 if self.whole else (SENT_BYTES_MAX, RECEIVED_BYTES_MAX)

    def logged(self) -> dict[str, CaseRow]:
        """The cases with bytes, by id."""
        return {
            case.family.id: case
            for _, rows in self.sections
            for row in rows
            for case in row.cases
            if case.sent and not case.drawn_in
        }


def suites(server: ServerResult) -> list[SuiteResult]:
    """The suites of a server that are judged by requirements."""
    found = server.compliance.suites
    return [suite for name, suite in found.items() if name != "seed" and suite.requirements]


def matrix(run: Run, known: Catalogue, *, whole: bool = False) -> Matrix | None:
    """The matrix of a run, its cases without bytes, or None where no such suite ran.

    :param whole: each case is shown by itself; those that were answered alike are not put together.
    """
    servers = [server for server in run.servers if suites(server)]
    if not servers:
        return None
    merged = {server.name: _merged(suites(server)) for server in servers}
    drawn: dict[str, str] = {}
    families = list(known.families.values())
    rows = []
    ids = dict.fromkeys(id for suite in merged.values() for id in suite.requirements)
    for requirement in requirement_verdicts.rows(known.requirements, families, ids):
        words = tuple(merged[server.name].requirements.get(requirement.id) for server in servers)
        if not any(words):
            continue
        own = _of(requirement, families)
        cases = []
        for family in own:
            first = drawn.get(family.id)
            case = _case(family, servers, merged, known)
            if case is not None:
                drawn.setdefault(family.id, requirement.id)
                cases.append(msgspec.structs.replace(case, drawn_in=first))
        cases.sort(key=lambda case: _BINDING_FIRST.index(case.family.level))
        contested = tuple(
            word is Word.WARN and _only_contested(cases, at) for at, word in enumerate(words)
        )
        rows.append(
            Row(requirement, words, tuple(cases), len(own), contested=contested, apart=whole)
        )
    sections: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: _place(row.requirement.clause)):
        match = _NUMBERS.search(row.requirement.clause)
        sections.setdefault(f"RFC {match[1]}" if match else "Other", []).append(row)
    counts = [_must(server, at, rows) for at, server in enumerate(servers)]
    return Matrix(
        tuple(server.name for server in servers),
        tuple(counts),
        tuple(requirement_verdicts.percent(one) for one in counts),
        tuple((name, tuple(found)) for name, found in sections.items()),
        whole=whole,
    )


def _only_contested(cases: Iterable[CaseRow], at: int) -> bool:
    """Whether what a server is warned of is contested, all of it."""
    warned = [case for case in cases if case.words[at] is Word.WARN]
    return bool(warned) and all(case.family.contested for case in warned)


def with_logs(
    made: Matrix,
    evidence: ExchangeReader,
    again: Mapping[str, tuple[str, ...]],
    *,
    bytes_max: int = LOGS_BYTES_MAX,
) -> Matrix:
    """The same with what was sent and received.

    The first case of a group stands for all. Failures come before contested cases, binding failures
    before others, and those of many servers before those of few.

    :param bytes_max: how many bytes of the page the logs may take.
    :param again: ``ServerResult.again`` by server.
    """
    budget = _Budget(bytes_max)
    failing = [
        same[0] for _, rows in made.sections for row in rows for same in row.groups if same[0].shown
    ]
    failing.sort(
        key=lambda case: (
            not case.fails,
            _BINDING_FIRST.index(case.family.level),
            -len(case.shown),
            case.family.id,
        )
    )
    limits = made.bytes_max
    logged = {case.family.id: _with_logs(case, evidence, again, budget, limits) for case in failing}
    sections = tuple(
        (
            name,
            tuple(
                msgspec.structs.replace(
                    row,
                    cases=tuple(
                        case if case.drawn_in else logged.get(case.family.id, case)
                        for case in row.cases
                    ),
                )
                for row in rows
            ),
        )
        for name, rows in made.sections
    )
    return msgspec.structs.replace(made, sections=sections, logs_left_out=budget.left_out)


def shortened(made: Matrix, *, surplus_bytes: int) -> Matrix:
    """The same with fewer cases; those that are left out are counted.

    Warnings go first, then failures that do not bind, and binding failures last.

    :param surplus_bytes: about how many bytes the page has to lose.
    """
    told = [
        (case.fails, _BINDING_FIRST.index(case.family.level), same, row.requirement.id)
        for _, rows in made.sections
        for row in rows
        for same in row.groups
        for case in same[:1]
    ]
    told.sort(key=lambda one: (one[0], -one[1]))
    gone: dict[str, set[str]] = {}
    for _, _, same, requirement in told:
        if surplus_bytes <= 0:
            break
        surplus_bytes -= _cost(same)
        gone.setdefault(requirement, set()).update(case.family.id for case in same)
    sections = tuple(
        (name, tuple(_without(row, gone.get(row.requirement.id, set())) for row in rows))
        for name, rows in made.sections
    )
    return msgspec.structs.replace(made, sections=sections)


def _without(row: Row, gone: set[str]) -> Row:
    cases = tuple(case for case in row.cases if case.drawn_in or case.family.id not in gone)
    left_out = row.not_passed - sum(not case.passed for case in cases)
    return msgspec.structs.replace(row, cases=cases, left_out=left_out)


def _cost(same: Sequence[CaseRow]) -> int:
    """About how many bytes of the page a group of cases takes."""
    words = sum(len(case.family.id) + len(case.family.title) for case in same)
    told = sum(len(one.actual) + sum(map(len, one.servers)) + 25 for one in same[0].told)
    return 90 + words + len(same[0].expected) + told


class _Budget:
    """The bytes of the page that are left for logs; the first cases take them."""

    def __init__(self, bytes_max: int) -> None:
        self._left = bytes_max
        self.left_out = 0

    def take(self, size: int) -> bool:
        """Whether there is room; takes it if there is."""
        if size > self._left:
            self.left_out += 1
            return False
        self._left -= size
        return True


def _merged(found: list[SuiteResult]) -> SuiteResult:
    """Several suites of one server as one: a requirement is as good as its worst."""
    requirements = requirement_verdicts.merged(found)
    merge: dict[str, dict[str, object]] = {}
    for key in ("cases", "generated", "answers"):
        merge[key] = {id: one for suite in found for id, one in getattr(suite, key).items()}
    return msgspec.structs.replace(found[0], requirements=requirements, **merge)


def _must(server: ServerResult, at: int, rows: Iterable[Row]) -> dict[str, int]:
    """The requirements that bind, by verdict. One that two suites ask for is counted once."""
    found = {row.requirement.id: (row.requirement.level, row.words[at], False) for row in rows}
    counts = requirement_verdicts.must(
        {id: (level, word, closed) for id, (level, word, closed) in found.items() if word}
    )
    closed = ((suite.must or {}).get("closed_unanswered", 0) for suite in suites(server))
    return {**counts, "closed_unanswered": min(sum(closed), counts["failed"])}


def _of(requirement: Requirement, families: Iterable[Family]) -> list[Family]:
    """The entries that show a requirement: families, and checks on every answer as such."""
    shows = requirement_verdicts.showing(requirement)
    return [
        family
        for family in (*families, *_CHECKS)
        if requirement_verdicts.has_level(requirement, family)
        and shows(family.refs or (family.ref,), family.group)
    ]


def _check(id: str, title: str, clause: str, level: Level) -> Family:
    """A check on every answer, as an entry that has a verdict: it sends nothing of its own."""
    return Family(
        id=id, ref=id, suite="", title=title, level=level, clause=clause, why="",
        judged_by="expectation", count=1, generated=True, refs=(id,), group=id,
    )  # fmt: skip


_CHECKS = (
    *(_check(rule.id, rule.title, rule.clause, rule.level) for rule in RULES.values()),
    _check(NOT_EARLY, "no answer before the header section is whole", "RFC 9110 5.3", Level.MUST),
)


def _place(clause: str) -> tuple[int, tuple[int, ...]]:
    match = _NUMBERS.search(clause)
    if match is None:
        return 1 << 30, ()
    return int(match[1]), tuple(int(part) for part in (match[2] or "0").split("."))


def _verdict(suite: SuiteResult, family: Family) -> tuple[Word, str, str, str] | None:
    """Word, what came back, what was expected, and the case to show; None where not fired."""
    if (verdict := suite.cases.get(family.id)) is not None:
        return verdict.word, verdict.actual, verdict.expected, verdict.case
    tally = suite.generated.get(family.id) or suite.answers.get(family.id)
    if tally is None:
        return None
    counts: dict[Word, int] = {}
    for words in tally.words.values():
        for word, number in words.items():
            counts[word] = counts.get(word, 0) + number
    word = requirement_verdicts.worst(counts)
    shown: Verdict | None = tally.failures[0] if tally.failures else None
    text = ", ".join(f"{number:,} {name}" for name, number in counts.items())
    if shown is None:
        return word, text, "", family.id
    return word, f"{text}; as {shown.case}: {shown.actual}", shown.expected, shown.case


def _case(
    family: Family,
    servers: list[ServerResult],
    merged: Mapping[str, SuiteResult],
    known: Catalogue,
) -> CaseRow | None:
    found = {server.name: _verdict(merged[server.name], family) for server in servers}
    words = tuple(one[0] if (one := found[server.name]) else None for server in servers)
    alike: dict[tuple[Word, str], list[str]] = {}
    # For a contested case, a pass is one of the readings, too.
    tells = (*_TOLD, Word.PASS) if family.contested else _TOLD
    shows = (*_SHOWN, Word.WARN) if family.contested else _SHOWN
    for server in servers:
        one = found[server.name]
        # The control validates nothing, so its failures say nothing.
        if not server.control and one is not None and one[0] in tells:
            alike.setdefault((one[0], one[1]), []).append(server.name)
    if not alike:
        return None
    told = tuple(Told(tuple(names), word, actual) for (word, actual), names in alike.items())
    expected = next((one[2] for one in found.values() if one and one[2]), "")
    telling = {name for names in alike.values() for name in names}
    shown = tuple(
        (name, one[3]) for name, one in found.items() if name in telling and one and one[0] in shows
    )
    suite = family.suite
    if not suite and shown and (witness := family_of(shown[0][1], known.families)):
        suite = witness.suite
    return CaseRow(family, words, told, expected, shown=shown, suite=suite)


def _with_logs(
    row: CaseRow,
    evidence: ExchangeReader,
    again: Mapping[str, tuple[str, ...]],
    budget: _Budget,
    limits: tuple[int, int],
) -> CaseRow:
    sent, line, own = b"", "", 0
    said = {name: told.actual for told in row.told for name in told.servers}
    alike: dict[tuple[bytes, str, str], list[str]] = {}
    first: dict[tuple[bytes, str, str], bytes] = {}
    for server, case in row.shown:
        for exchange in evidence.exchanges(server, case=case):
            if not sent:
                sent, words = exchange.sent, again.get(server, ())
                line = _again(row, exchange, words, evidence, server)
                own = len(shell_lines.own(exchange))
            key = (_undated(exchange.received), str(exchange.outcome), str(exchange.end))
            alike.setdefault(key, []).append(server)
            first.setdefault(key, exchange.received)
    if not sent:
        return row
    sides = [page_bytes(sent, limit=limits[0]), line]
    sides += [page_bytes(received, limit=limits[1]) for received in first.values()]
    cost = sum(len(escape(side)) + _AROUND_BYTES for side in sides)
    if not budget.take(cost):
        return row
    return msgspec.structs.replace(
        row,
        sent=sent,
        own=own,
        again=line,
        logs=tuple(
            Log(
                tuple(names), first[key], len(first[key]), key[1], key[2],
                _own_answers(first[key], said.get(names[0], "")),
            )
            for key, names in alike.items()
        ),
    )  # fmt: skip


_STATUSES = re.compile(r"\d{3}(?:, \d{3})*")
_NEXT_GETS = re.compile(r"the next request (?:wrongly )?gets (\d{3}(?:, \d{3})*).*")


def _own_answers(received: bytes, actual: str) -> int:
    """How many bytes answer the case itself: all, unless what came tells where the answer to the
    next request begins.

    :param actual: what came, in the words of the verdict.
    """
    came, then = expectation_words.came_apart(actual.rpartition("; as ")[2].rpartition(": ")[2])
    after = _NEXT_GETS.fullmatch(then)
    if after is None or _STATUSES.fullmatch(came) is None:
        return len(received)
    starts, at = [], 0
    while at < len(received):
        try:
            response = response_reader.read(received, at, method=b"GET", ended=True)
        except (response_reader.Malformed, response_reader.Incomplete):
            return len(received)
        starts += [] if response.interim else [at]
        at = response.end
    own, others = came.count(",") + 1, after[1].count(",") + 1
    return starts[own] if len(starts) == own + others else len(received)


def _again(
    row: CaseRow, exchange: Exchange, words: tuple[str, ...], evidence: ExchangeReader, server: str
) -> str:
    """The line that sends an exchange again, and the one that sends fewer bytes."""
    gone = words[:1] == ("--serve",)  # nothing listens there any more
    facts = evidence.facts(server)
    typed = None if gone else by_hand(exchange, facts)
    line = typed or command(exchange.case, row.suite, words)
    for small in evidence.exchanges(server, case=exchange.case, delivery=kept_as(row.family.id)):
        less = None if gone else by_hand(small, facts, with_canary=False)
        line += f"\n# {fewer(exchange, small)}" + (f"\n{less}" if less else "")
    return line


def _undated(received: bytes) -> bytes:
    """The answer without its Date, so that equal answers are told once."""
    return re.sub(rb"(?i)\r\ndate:[^\r\n]*", b"", received, count=1)
