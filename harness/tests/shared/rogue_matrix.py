"""Every bug of :mod:`rogue` against the catalogue: which cases see it, as kept in ``golden/rogue``.

``python -m httpmark.harness.tests.shared.rogue_matrix`` plays the designed cases and a seeded
sample of each generated family against the unmodified rogue and against each bug, several at once
because nearly all of it is waiting. It compares what changes with the golden lists. ``--write``
writes them anew. ``B34 B35`` takes these bugs only. ``--all`` plays generated families whole (hours
for all bugs) and tells how many of each family see a bug.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import functools
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from httpmark.harness.catalogue import delivery_modes, loading, lookup, notation
from httpmark.harness.catalogue.catalogue import Catalogue, Planned
from httpmark.harness.firing.probe import Probe
from httpmark.harness.firing.programs import reflections, stage
from httpmark.harness.judging import delivery_comparison, judge, requirement_verdicts
from httpmark.harness.judging.response_rules.exchange_view import Declared, ExchangeView
from httpmark.harness.judging.response_rules.judge_answers import judge_answers
from httpmark.harness.model.cases import (
    FILE_TEXT,
    SECRET,
    SECRET_TEXT,
    Case,
    Facts,
    Family,
    Level,
    Op,
    Requirement,
)
from httpmark.harness.model.exchanges import Exchange, ExchangeFlag, Outcome
from httpmark.harness.model.verdicts import Word
from httpmark.harness.servers import sockets, static_files
from httpmark.harness.tests.shared import rogue
from httpmark.harness.tests.shared.asking_again import asked_again

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "rogue"
SUITES = ("rfc", "smuggling", "resilience")
JOBS = 4  # bugs at once: a rogue is mostly waited for
SAMPLE = 24  # cases of a generated family
SAMPLE_OFFSETS = 64  # of one that varies the offset: what a block's edge hides is rare
LAST_OFFSETS = 8  # and its last ones: what the last part of a block hides is at the end only
SAMPLE_OF_BUG = 4  # cases that show a bug
SLOW = ("B08", "B71", "B83")  # their cases wait for seconds, again and again
IN_FLIGHT = 32
IN_FLIGHT_AGAIN = 8
IN_FLIGHT_LAST = 4
LIMITS = {
    "request_target_bytes": rogue.TARGET_MAX,
    "field_line_bytes": rogue.FIELD_MAX + 2,  # with its CRLF
    "fields": rogue.FIELDS_MAX,
    "content_bytes": rogue.CONTENT_MAX,
}
# Short enough to test, longer than the patience with which a case waits for an answer.
TIMEOUTS = {"head_s": 3.0, "content_s": 3.0, "idle_s": 4.0}
# The only program that needs nothing but connections.
RUNNERS = (None, "follow_redirect")

# The cases that are to see a bug: numbers, ranges, families, rules on every answer.
NAMED: dict[str, tuple[str, ...]] = {
    "B01": ("VER",),
    "B02": ("VER",),
    "B03": ("MTH", "RFC-METH"),
    "B04": ("RFC-METH",),
    "B05": ("RL-12..13",),
    "B06": ("RL-16", "RL-27"),
    "B07": ("LEAD-01",),
    "B08": ("LEAD-10",),
    "B09": ("RFC-PATH",),
    "B10": ("SIMD-PATH",),
    "B11": ("RFC-QUERY",),
    "B12": ("RFC-PCT-DIFF",),
    "B13": ("RFC-PCT-DIFF",),
    "B14": ("SIMD-PATH",),
    "B15": ("TGT",),
    "B16": ("TGT",),
    "B17": ("TGT",),
    "B18": ("TGT",),
    "B19": ("TGT-03..04", "TGT-64"),
    "B20": ("TGT",),
    "B21": ("HOST",),
    "B22": ("HOST-12",),
    "B23": ("HOST",),
    "B24": ("HN-02",),
    "B25": ("RFC-HNAME-*",),
    "B26": ("HN-04..09",),
    "B27": ("HN-12..13", "HN-34..35", "TE"),
    "B28": ("RFC-HVALUE-*",),
    "B29": ("HOST-44", "TE", "CL"),
    "B30": ("EOL-08..19",),
    "B31": ("EOL-12",),
    "B32": ("FOLD-01",),
    "B33": ("FOLD-05", "FOLD-15..16"),
    "B34": ("CL",),
    "B35": ("CL",),
    "B36": ("CL-08", "CL-17"),
    "B37": ("CL-10",),
    "B38": ("CL",),
    "B39": ("CL-07",),
    "B40": ("TE",),
    "B41": ("TE-04..05",),
    "B42": ("TE-14", "TE-21"),
    "B43": ("TE",),
    "B44": ("TE-02..03",),
    "B45": ("TE-16",),
    "B46": ("CLTE",),
    "B47": ("CLTE",),
    "B48": ("TE-59..61",),
    "B49": ("CHK",),
    "B50": ("CHK-19",),
    "B51": ("CHK-44..45", "CHK-49"),
    "B52": ("CHK-25..26", "CHK-31", "CHK-33..34", "CHK-39"),
    "B53": ("CHK",),
    "B54": ("CHK",),
    "B55": ("CHK",),
    "B56": ("CHK",),
    "B57": ("TRL-01",),
    "B58": ("TRL-06..14",),
    "B59": ("CHK",),
    "B60": ("SMUG",),
    "B61": ("SMUG-32",),
    "B62": ("SMUG-33", "CONN"),
    "B63": ("CONN-03",),
    "B64": ("CONN-24",),
    "B65": ("PIPE",),
    "B66": ("PIPE-10",),
    "B67": ("BASE-02", "PIPE-08"),
    "B68": ("EXP-04",),
    "B69": ("EXP-01",),
    "B70": ("SMUG-24..27",),
    "B71": ("TIME-05",),
    "B72": ("CONN-26", "EOF-04"),
    "B73": ("LIM-19", "CONN-25"),
    "B74": ("HN-37", "PIPE"),
    "B75": ("SEG-CRLF",),
    "B76": ("RESP-20",),
    "B77": ("RESP-34",),
    "B78": ("RESP-09",),
    "B79": ("RESP-12",),
    "B80": ("LIM-02",),
    "B81": ("PATHX-08",),
    "B82": ("PATHX-05",),
    "B83": ("PIPE-10",),
    "B84": ("CHK-88..89",),
    "B85": ("CHK-67", "EOL"),
    "B86": ("HN-16..17",),
    "B87": ("TGT-46",),
    "B88": ("EXP-10", "EXP-19"),
    "B89": ("MTH-08",),
    "B90": ("EXP-01..02",),
    "B91": ("POS-HOST-IP", "POS-AUTHORITY"),
    "B92": ("RFC-HOST-IP", "RFC-AUTHORITY"),
    "B93": ("RFC-HOST-PORT",),
    "B94": ("POS-HOST-PORT",),
    "B95": ("SIMD-HOST",),
    "B96": ("SIMD-HOST-OK",),
    "B97": ("RFC-VER",),
    "B98": ("RFC-METH-TARGET",),
    "B99": ("RFC-TE-PARAM",),
    "B100": ("RFC-TE-PARAM",),
    "B101": ("TGT-89",),
    "B102": ("CONN-29",),
    "B103": ("SEM-27",),
    "B104": ("SEM-28",),
    "B105": ("CHK-92",),
    "B106": ("PIPE-18",),
}

# Bugs that rules on every answer see: the cases whose answers show them.
SHOWN_BY: dict[str, tuple[str, ...]] = {
    "B76": ("CL-10",),
    "B77": ("BASE-01",),
    "B78": ("CONN-23", "EXP-13"),
    "B79": ("RESP-12",),
}

# What the unmodified rogue does not pass, and why; everything else it passes.
EXPLAINED = {
    "trace-keeps-credentials": (Word.WARN, "TRACE draws 501, which is allowed and shows nothing"),
    "method-not-allowed-names-others": (
        Word.NOT_APPLICABLE,
        "no method draws 405 there: known ones are served, others draw 501",
    ),
    "upgrade-required-says-to-what": (
        Word.NOT_APPLICABLE,
        "426 is never sent: an Upgrade is ignored",
    ),
    "connection-closed-unasked-announced": (
        Word.NOT_APPLICABLE,
        "connections persist, so no close comes unasked",
    ),
}
# Bugs that no clause forbids outright: their cases turn from pass to a warning.
NOTED_ONLY = frozenset({"B39", "B85", "B88", "B89", "B90"})

# Judged by the clock: on a busy machine every rogue is slow.
UNSTEADY = frozenset({"chunk-hundred-thousand-of-one"})
# What these bugs do to these cases depends on how much of them is there when it is read.
RACES = frozenset({
    "B59 chunk-line-1m", "B61 error-answer-while-sending", "B65 pipeline-second-incomplete",
    "B70 smuggle-expect-early-answer",
})  # fmt: skip
CUTS_MAX = 60  # steps; more would not end within the rogue's timeouts
CUT_MS = 25  # between two pieces, so that a busy rogue still reads them apart

Words = dict[str, Word]


# Cases are addressed to a name of the rogue's own, so that one plan serves every run.
FACTS = Facts(
    host="rogue.example",
    capabilities=(
        "hello",
        "body",
        "mirror",
        "behave",
        "echo",
        "static",
        "events",
        "catch_all",
        "own_answer",
        "early",
    ),
    limits=dict(LIMITS),
    timeouts=dict(TIMEOUTS),
    values={
        "secret": SECRET,
        "secret_text": SECRET_TEXT,
        "file_text": FILE_TEXT,
        "etag": rogue.tag(FILE_TEXT.encode()).decode(),
    },
)


@contextlib.contextmanager
def running(bug: str | None) -> Iterator[int]:
    """The rogue as a process of its own with a folder to serve; its port."""
    with tempfile.TemporaryDirectory() as scratch:
        static_files.plant(Path(scratch))
        folder = Path(scratch, static_files.FOLDER)
        command = [
            *(sys.executable, "-m", "httpmark.harness.tests.shared.rogue", "--static", str(folder)),
            *("--head-timeout-s", str(TIMEOUTS["head_s"])),
            *("--idle-timeout-s", str(TIMEOUTS["idle_s"])),
            *(("--bug", bug) if bug is not None else ()),
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().rpartition(" ")[2])
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=10)


def plan(known: Catalogue, *, whole: bool = False) -> list[Planned]:
    """Designed cases, and of each generated family a sample that is the same every time, or all.

    What is accepted goes out once more with a pause inside every CRLF (SEG-CRLF).
    """
    planned: list[Planned] = []
    for suite in SUITES:
        for family in known.of_suite(suite):
            if family.runner not in RUNNERS or not lookup.has_octets(known, family.id):
                continue
            if known.inapplicable(family.id, FACTS) is not None or family.id in UNSTEADY:
                continue
            with contextlib.suppress(notation.Unknown):  # it asks for what the rogue has not
                cases = known.planned(family.id, FACTS)
                planned += cases if whole else _sample(family, cases)
        for _, one in delivery_comparison.corpus_of(known, suite, FACTS, lambda _: True):
            if one.expectation and one.expectation.passes[0].answers[0].word == "ACC":
                for cut in delivery_modes.deliveries(one.case, "crlf", delivery_modes.Known()):
                    if len(cut.steps) <= CUTS_MAX:
                        planned.append(msgspec.structs.replace(one, case=_slower(cut)))
    return planned


def _slower(cut: Case) -> Case:
    replace = msgspec.structs.replace
    steps = tuple(
        replace(step, wait_ms=CUT_MS) if step.op is Op.PAUSE else step for step in cut.steps
    )
    return replace(cut, steps=steps, deadline_ms=cut.deadline_ms + CUT_MS * len(steps))


def _sample(family: Family, cases: Iterator[Planned]) -> Iterator[Planned]:
    is_offset = family.ref.startswith("SIMD-")
    size = SAMPLE_OFFSETS if is_offset else SAMPLE
    if family.count <= size:
        return cases
    chosen = set(random.Random(family.id).sample(range(family.count), size))
    if is_offset:
        chosen |= set(range(family.count - LAST_OFFSETS, family.count))
    return (one for number, one in enumerate(cases) if number in chosen)


def name(one: Planned | Exchange) -> str:
    """What a case is called in the lists: its id, and its delivery where that is not whole."""
    case, cut = (one.case.id, one.case.delivery) if isinstance(one, Planned) else (
        one.case, one.delivery)  # fmt: skip
    return case if cut == "whole" else f"{case}@{cut}"


def select(known: Catalogue, planned: list[Planned], selectors: Iterable[str]) -> list[Planned]:
    """The cases of these numbers, ranges and families."""
    row = Requirement(id="", clause="", level=Level.INFO, title="", cases=tuple(selectors))
    shows = requirement_verdicts.showing(row)
    found = []
    for one in planned:
        family = known.families[one.case.family]
        refs, group = family.refs or (family.ref,), family.group
        if one.case.delivery != "whole":
            refs, group = (f"SEG-{delivery_modes.mode_of(one.case.delivery).upper()}",), ""
        if shows(refs, group):
            found.append(one)
    return found


Told = dict[str, tuple[Word, Words]]  # by case: its verdict, and that of each check on its answers


def words(port: int, planned: list[Planned]) -> Words:
    """One verdict of each case, and of each check on every answer.

    What does not pass is asked again with less beside it and more patience; where that differs or
    is still silent, a third time decides: the rogue is one thread of Python, and a busy machine can
    make it seem silent.
    """
    staged = [one for one in planned if _is_staged(one)]
    planned = [one for one in planned if not _is_staged(one)]
    whole = [one for one in planned if one.case.delivery == "whole"]
    told, _ = _once(port, whole, IN_FLIGHT)
    cut, _ = _once(port, [one for one in planned if one.case.delivery != "whole"], IN_FLIGHT_AGAIN)
    told |= cut
    doubtful = [_patient(one, 2) for one in planned if _is_doubtful(told[name(one)])]
    again, silent = _once(port, doubtful, IN_FLIGHT_AGAIN)
    open_still = [
        _patient(one, 2)
        for one in doubtful
        if name(one) in silent or again[name(one)] != told[name(one)]
    ]
    last, _ = _once(port, open_still, IN_FLIGHT_LAST)
    settled = again | last
    if changed_word := [case for case in settled if settled[case][0] is not told[case][0]]:
        some = ", ".join(changed_word[:4]) + (", ..." if len(changed_word) > 4 else "")
        why = "their first verdict was another one, or time ran out"
        asked_again.note(f"{len(changed_word)} cases of a rogue server ({some})", why)
    told |= settled
    checks: Words = {}
    for _, answers in told.values():
        for check, word in answers.items():
            checks[check] = max(checks.get(check, Word.PASS), word, key=_WORST.index)
    played = {one.case.id: reflections.follow_redirect(_stage(port, one)).word for one in staged}
    return {case: word for case, (word, _) in told.items()} | played | checks


def _is_staged(one: Planned) -> bool:
    first = one.expectation.passes[0].answers[0].word if one.expectation else ""
    return first.startswith("views.")


def _stage(port: int, one: Planned) -> stage.Stage:
    """What ``follow_redirect`` works with: a door to the rogue, and nothing else of a stage."""

    def fire(cases: list[Case], in_flight: int) -> list[Exchange]:
        with Probe("127.0.0.1", port, in_flight=in_flight) as probe:
            return [exchange for batch in probe.fire(cases) for exchange in batch]

    return stage.Stage(
        case=one.case,
        facts=FACTS,
        fire=fire,
        alive=lambda: True,
        pids=list,
        flood=lambda octets, total, stall_s, look: (0, "closed"),
        trickle=lambda octets, clients, seconds, look: 0,
        read_late=lambda octets, is_whole, quiet_s, patience_s, opening: sockets.ReadLate(
            b"", b"", sockets.Ending.CLOSED
        ),
        negatives=list,
    )


def _is_doubtful(told: tuple[Word, Words]) -> bool:
    return told[0] is not Word.PASS or any(word is not Word.PASS for word in told[1].values())


def _patient(one: Planned, times: int) -> Planned:
    """The case with so many times the patience for each answer."""
    replace = msgspec.structs.replace
    steps = tuple(
        replace(step, wait_ms=times * step.wait_ms) if step.op is Op.AWAIT else step
        for step in one.case.steps
    )
    deadline_ms = times * one.case.deadline_ms
    return replace(one, case=replace(one.case, steps=steps, deadline_ms=deadline_ms))


def _once(port: int, planned: list[Planned], in_flight: int) -> tuple[Told, set[str]]:
    """What is said of each case, and which of them ran out of time."""
    plans = {name(one): one for one in planned}
    judging = judge.Judge()
    told: Told = {}
    silent: set[str] = set()
    with Probe("127.0.0.1", port, in_flight=in_flight) as probe:
        for batch in probe.fire(one.case for one in planned):
            now = time.time()
            for exchange in batch:
                word = judging.judge(plans[name(exchange)], exchange).word
                # The samples of generated families draw the same answers over and over.
                is_designed = exchange.case == exchange.family
                checks = _answers(exchange, now - exchange.end_us / 1e6) if is_designed else {}
                told[name(exchange)] = word, checks
                if exchange.outcome is Outcome.HUNG or exchange.flags & ExchangeFlag.AWAIT_RAN_OUT:
                    silent.add(name(exchange))
    return told, silent


_WORST = (Word.PASS, Word.WARN, Word.FAIL)


def _answers(exchange: Exchange, began_s: float) -> Words:
    """What the checks on every answer say of one exchange."""
    talk = ExchangeView(
        sent=exchange.sent[: exchange.sent_octets],
        received=exchange.received,
        end=exchange.end,
        end_us=exchange.end_us,
        timeline=exchange.timeline,
        began_s=began_s,
        head_only=exchange.head_only,
    )
    findings = judge_answers(talk, Declared(idle_s=TIMEOUTS["idle_s"]))
    found = dict.fromkeys(findings.judged, Word.PASS)
    for finding in findings.found:
        found[finding.rule] = max(found[finding.rule], finding.word, key=_WORST.index)
    return found


def sample_of(known: Catalogue, planned: list[Planned], bug: str) -> list[Planned]:
    """The same few cases every time, each of which shows a bug by itself."""
    seen = {line.partition(":")[0] for line in golden(bug) or ()}
    named = select(known, planned, SHOWN_BY.get(bug, NAMED[bug]))
    shows = [one for one in named if bug in SHOWN_BY or name(one) in seen]
    return random.Random(bug).sample(shows, min(len(shows), SAMPLE_OF_BUG))


def names_of(known: Catalogue, planned: list[Planned], bug: str) -> set[str]:
    """What is to see a bug: the names of cases, or of rules on every answer."""
    rules = {selector for selector in NAMED[bug] if selector.startswith("RESP-")}
    return rules or {name(one) for one in select(known, planned, NAMED[bug])}


def is_caught(bug: str, lines: Iterable[str], named: set[str]) -> bool:
    """Whether something that is to see a bug fails; warns, where no clause forbids it."""
    worst = "> warn" if bug in NOTED_ONLY else "> fail"
    return any(line.partition(":")[0] in named and line.endswith(worst) for line in lines)


def difference(found: Words) -> list[str]:
    """What is not as with the unmodified rogue, a line for each case: ``case: pass > fail``."""
    lines = []
    for case in sorted(found):
        conforming = EXPLAINED[case][0] if case in EXPLAINED else Word.PASS
        if found[case] is not conforming:
            lines.append(f"{case}: {conforming} > {found[case]}")
    return lines


def golden(bug: str) -> list[str] | None:
    """The kept list of a bug; None where there is none."""
    path = GOLDEN / f"{bug}.txt"
    return path.read_text().splitlines() if path.is_file() else None


def changed(bug: str | None, planned: list[Planned]) -> list[str]:
    """What a bug changes of these cases."""
    with running(bug) as port:
        lines = difference(words(port, planned))
    return [line for line in lines if f"{bug} {line.partition(':')[0]}" not in RACES]


class Changed(NamedTuple):
    """What a bug changes, and what was asked again for it."""

    lines: list[str]
    asked_again: list[str]


def changed_of_all(bug: str) -> Changed:
    """What a bug changes of all cases; for processes that play many bugs."""
    return Changed(changed(bug, _all_cases()), asked_again.taken())


@functools.cache
def _all_cases() -> list[Planned]:
    return plan(loading.load())


def changed_again(bug: str, planned: list[Planned], lines: list[str]) -> list[str]:
    """The same a second time, where ``lines`` are not as kept, and noted as asked again.

    A busy machine moves what hangs on time; a difference counts when it comes again.
    """
    off = len(set(lines) ^ set(golden(bug) or ()))
    asked_again.note(f"all cases against bug {bug}", f"{off} lines were not as kept")
    return changed(bug, planned)


def main(arguments: Iterable[str] | None = None) -> int:
    """The command; 1 where a list is not as kept."""
    parser = argparse.ArgumentParser(description="Every seeded bug against the catalogue.")
    parser.add_argument("bugs", nargs="*", metavar="BNN", help="these only")
    parser.add_argument("--write", action="store_true", help="write the golden lists anew")
    parser.add_argument("--all", action="store_true", help="generated families whole; no lists")
    parser.add_argument("--jobs", type=int, default=JOBS, help="bugs at once")
    given = parser.parse_args(list(arguments) if arguments is not None else None)
    if unknown := [bug for bug in given.bugs if bug not in rogue.BUGS]:
        parser.error(f"no bug {unknown[0]}; known are {', '.join(rogue.BUGS)}")
    if given.write and given.all:
        parser.error("lists are of the sample: --write without --all")
    known = loading.load()
    planned = plan(known, whole=given.all)
    families = {one.case.id: one.case.family for one in planned}
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(max(given.jobs, 1)) as pool:
        unmodified = pool.submit(changed, None, planned)
        bugs = {bug: pool.submit(changed, bug, planned) for bug in given.bugs or rogue.BUGS}
        for line in unmodified.result():
            print(f"without a bug: {line}")
            wrong += 1
        for bug, found in bugs.items():
            lines = found.result()
            seen = f"{bug} {len(lines)} cases see it"
            if given.all:
                counts = Counter(families.get(line.partition(":")[0], "checks") for line in lines)
                told = ", ".join(f"{family} {count}" for family, count in counts.most_common())
                print(f"{seen}: {rogue.BUGS[bug]}: {told}", flush=True)
                wrong += not lines
                continue
            expected = golden(bug)
            if lines != expected and not given.write:
                lines = changed_again(bug, planned, lines)
            if given.write:
                (GOLDEN / f"{bug}.txt").write_text("".join(f"{line}\n" for line in lines))
            off = sorted(set(lines) ^ set(expected or ()))
            state = "as kept" if not off else f"{len(off)} lines differ"
            print(f"{seen}, {state}: {rogue.BUGS[bug]}")
            for line in off if not given.write else ():
                print(f"  {'+' if line in lines else '-'} {line}")
            sys.stdout.flush()
            wrong += bool(off) and not given.write
    for line in asked_again.taken():
        print(f"asked again: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
