"""Every bug of :mod:`rogue` against the catalogue: which cases see it, as kept in ``golden/rogue``.

``python -m httpmark.harness.tests.rogue_matrix`` plays the designed cases and a seeded sample of
each generated family against the unmodified rogue and against each bug, and compares what changes
with the golden lists; ``--write`` writes them anew, ``B34 B35`` takes these bugs only.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from httpmark.harness import catalogue, conformance, judge
from httpmark.harness.catalogue import Catalogue, Planned
from httpmark.harness.model import Exchange, Family, Verdict, Word
from httpmark.harness.probe import Probe
from httpmark.harness.tests import rogue

GOLDEN = Path(__file__).parent / "golden" / "rogue"
UNMODIFIED = "unmodified"
SUITES = ("rfc", "smuggling", "resilience")
SAMPLE = 24  # cases of a generated family
IN_FLIGHT = 32
LIMITS = {
    "target_bytes": rogue.TARGET_MAX,
    "field_bytes": rogue.FIELD_MAX,
    "fields": rogue.FIELDS_MAX,
    "content_bytes": rogue.CONTENT_MAX,
}

Words = dict[str, Word]


@contextlib.contextmanager
def running(bug: str | None, *arguments: str) -> Iterator[conformance.Target]:
    """The rogue as a process of its own, on a port of its own."""
    command = [sys.executable, "-m", "httpmark.harness.tests.rogue", *arguments]
    if bug is not None:
        command += ["--bug", bug]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(" ")[2])
        yield conformance.Target(
            name=bug or UNMODIFIED,
            address="127.0.0.1",
            port=port,
            host=f"127.0.0.1:{port}",
            capabilities=("hello", "body", "mirror", "behave"),
            limits=dict(LIMITS),
        )
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)


def plan(
    known: Catalogue, target: conformance.Target, chosen: Callable[[Family], bool]
) -> list[Planned]:
    """Designed cases whole, of each generated family a sample that is the same every time."""
    facts = target.facts()
    planned: list[Planned] = []
    for suite in SUITES:
        for family in known.of_suite(suite):
            if family.runner is not None or not conformance.has_octets(known, family.id):
                continue
            if known.inapplicable(family.id, facts) is not None or not chosen(family):
                continue
            cases = list(known.planned(family.id, facts))
            if len(cases) > SAMPLE:
                cases = random.Random(family.id).sample(cases, SAMPLE)
            planned += cases
    return planned


def play(target: conformance.Target, planned: list[Planned]) -> dict[str, Exchange]:
    """One exchange of each case."""
    with Probe(target.address, target.port, in_flight=IN_FLIGHT) as probe:
        return {
            exchange.case: exchange
            for batch in probe.fire(one.case for one in planned)
            for exchange in batch
        }


def verdicts(target: conformance.Target, planned: list[Planned]) -> dict[str, Verdict]:
    """One verdict of each case."""
    exchanges = play(target, planned)
    judging = judge.Judge()
    return {one.case.id: judging.judge(one, exchanges[one.case.id]) for one in planned}


def words(found: dict[str, Verdict]) -> Words:
    return {case: verdict.word for case, verdict in found.items()}


def difference(before: Words, after: Words) -> list[str]:
    """What a bug changes, a line for each case: ``case: pass > fail``."""
    return [
        f"{case}: {before[case]} > {after[case]}"
        for case in sorted(before.keys() & after.keys())
        if before[case] is not after[case]
    ]


def golden(name: str) -> list[str] | None:
    """The kept list of a bug; None where there is none."""
    path = GOLDEN / f"{name}.txt"
    return path.read_text().splitlines() if path.is_file() else None


def _settled(bug: str, known: Catalogue, before: Words, expected: list[str] | None) -> list[str]:
    """What a bug changes; what is not as expected is asked again, for the machine may be why."""
    with running(bug) as target:
        found = words(verdicts(target, plan(known, target, lambda _: True)))
        lines = difference(before, found)
        if expected is not None:
            doubtful = {line.partition(":")[0] for line in set(lines) ^ set(expected)}
            if doubtful:
                again = [p for p in plan(known, target, lambda _: True) if p.case.id in doubtful]
                found |= words(verdicts(target, again))
                lines = difference(before, found)
    return lines


def main(arguments: Iterable[str] | None = None) -> int:
    """The command; 1 where a list is not as kept."""
    parser = argparse.ArgumentParser(description="Every planted bug against the catalogue.")
    parser.add_argument("bugs", nargs="*", metavar="BNN", help="these only")
    parser.add_argument("--write", action="store_true", help="write the golden lists anew")
    given = parser.parse_args(list(arguments) if arguments is not None else None)
    if unknown := [bug for bug in given.bugs if bug not in rogue.BUGS]:
        parser.error(f"no bug {unknown[0]}; known are B01 to B82")
    known = catalogue.load()
    with running(None) as target:
        found = verdicts(target, plan(known, target, lambda _: True))
    before = words(found)
    wrong = 0
    for bug in given.bugs or rogue.BUGS:
        started = time.monotonic()
        expected = golden(bug)
        lines = _settled(bug, known, before, None if given.write else expected)
        if given.write:
            (GOLDEN / f"{bug}.txt").write_text("".join(f"{line}\n" for line in lines))
        off = sorted(set(lines) ^ set(expected or ()))
        state = "as kept" if not off else f"{len(off)} lines differ"
        print(f"{bug} {len(lines)} cases see it, {state}, {time.monotonic() - started:.0f} s: "
              f"{rogue.BUGS[bug]}", flush=True)  # fmt: skip
        for line in off if not given.write else ():
            print(f"  {'+' if line in lines else '-'} {line}")
        wrong += bool(off) and not given.write
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
