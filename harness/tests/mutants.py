"""Does the catalogue notice a change of the reference server? A program; see `make mutants`.

It makes random changes of one token in the sources that decide what a client sees, builds each
server, and judges it by the suites rfc and smuggling: all by the sample of `--quick`, and what is
left then by everything. A change is noticed when a case or rule fails that passes without it, or
when the server dies. Who is not noticed is listed; what is known of them stands in
harness/tests/golden/mutants.toml.

Of a line that the whole look never executes at the server without a change, the sample is enough:
it shows what was computed from that line when the server was compiled.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import queue
import signal
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from httpmark.harness.catalogue import loading
from httpmark.harness.tests.shared.cpp_changes import Change, drawn
from httpmark.harness.tests.shared.mutant_server import Bench, Judgement
from httpmark.harness.tests.shared.reached_lines import Lines, unreached
from httpmark.harness.tests.shared.repository import ROOT

KNOWN = ROOT / "harness" / "tests" / "golden" / "mutants.toml"
CLASSES = {"equivalent", "invisible", "allowed", "missed"}
SOURCES = ROOT / "reference_server"
AGAIN_MAX = 4  # of what failed when there was no time to ask it again
PATIENCE_S = 30.0
TOLD_MAX = 8  # of what noticed a change
# What decides answers. Of the kernels, only what all share: this machine runs one of them.
SEEN = (
    "src/http/*.[ch]pp", "src/scan/head.hpp", "src/app/*.cpp", "src/net/connection*.cpp",
    "src/net/exchange.hpp", "example/*.cpp",
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A change, and what became of it."""

    number: int
    file: str
    line: int
    kind: str
    was: str
    became: str
    outcome: str
    """noticed, survived, not compiled, same binary, unfinished; sampled: the whole look is due."""
    noticed_by: tuple[str, ...] = ()
    """Some of what fails; of a survivor, what is worse and no failure."""
    seconds: float = 0.0
    reached: bool = True
    """Whether the suites execute its line, as far as is known."""

    @property
    def is_open(self) -> bool:
        """Nothing has noticed it."""
        return self.outcome in ("survived", "unfinished", "sampled")


def sources() -> dict[str, str]:
    """What is changed, by the path in reference_server/."""
    found = (path for pattern in SEEN for path in SOURCES.glob(pattern))
    return {str(path.relative_to(SOURCES)): path.read_text("utf-8") for path in found}


@dataclass(frozen=True)
class Baseline:
    """The server without a change, as it was judged twice."""

    quick: Judgement
    full: Judgement

    def noticed(self, seen: Judgement, *, quick: bool) -> tuple[str, ...]:
        """What fails now and did not, or how the server ended."""
        before = self.quick if quick else self.full
        fails = sorted(seen.failed - before.failed)
        return tuple([seen.end][: bool(seen.end)] + fails)


def judge(
    bench: Bench, change: Change, baseline: Baseline, *, quick: bool
) -> tuple[str, tuple[str, ...]]:
    """The outcome of one look at one change, and who noticed it."""
    path = bench.sources / change.file
    source = path.read_text("utf-8")
    path.write_text(change.apply(source), "utf-8")
    try:
        if not bench.build():
            return "not compiled", ()
        if bench.hash() == bench.unchanged:
            return "same binary", ()
        seen, noticed = look(bench, baseline, quick=quick)
        if noticed:
            return "noticed", noticed[:TOLD_MAX]
        if seen is None:
            return "unfinished", ()
        worse = seen.worse_than_pass - baseline.full.worse_than_pass
        return "survived", tuple(sorted(worse)[:TOLD_MAX])
    finally:
        path.write_text(source, "utf-8")


def look(
    bench: Bench, baseline: Baseline, *, quick: bool
) -> tuple[Judgement | None, tuple[str, ...]]:
    """What a look says, none when it was not finished, and what is noticed for sure.

    A server that is broken takes long, as all that fails is asked again with patience. So it gets
    as much time as two good servers, and only what else is not sure gets all that it may need.
    """
    patience = max(PATIENCE_S, 2 * (baseline.quick if quick else baseline.full).seconds)
    for seconds in (patience, None):
        seen = bench.judge(quick=quick, seconds=seconds)
        if seen is None:
            break
        noticed = baseline.noticed(seen, quick=quick)
        is_sure = not seen.cut_short
        if noticed and may_be_chance(seen, noticed):
            again = asked_again(bench, baseline, noticed, quick=quick)
            noticed, is_sure = again or (), is_sure and again is not None
        if noticed or is_sure:
            return seen, noticed
    return None, ()


def may_be_chance(seen: Judgement, noticed: tuple[str, ...]) -> bool:
    """Whether a machine that was too busy may be all that was noticed."""
    return not seen.died and (seen.cut_short or len(noticed) == 1)


def asked_again(
    bench: Bench, baseline: Baseline, names: tuple[str, ...], *, quick: bool
) -> tuple[str, ...] | None:
    """What is noticed when that which told is asked once more; none when that is not known.

    Single cases are asked alone, else whole families; rules on all answers, or how the server
    ended, by everything.
    """
    known = loading.load().families
    families = [known[name] for one in names if (name := one.partition("/")[2]) in known]
    families.sort(key=lambda family: family.count)
    only = [family.id for family in families[:AGAIN_MAX]]
    seen = bench.judge(quick=quick, only=only, seconds=2 * PATIENCE_S if only else None)
    if seen is None:
        return None
    noticed = baseline.noticed(seen, quick=quick)
    return None if seen.cut_short and not noticed else noticed


def judge_baseline(bench: Bench) -> Baseline:
    """Both looks at the unchanged server, which must be whole and pass."""
    quick, full = bench.judge(quick=True), bench.judge(quick=False)
    if quick is None or full is None:
        sys.exit("stopped, or the server without a change takes too long on this machine")
    for seen in (quick, full):
        if seen.end or seen.failed:
            sys.exit(f"the server without a change fails: {seen.end or sorted(seen.failed)[:8]}")
    return Baseline(quick, full)


class Record:
    """The results so far, in a file; a run that was stopped goes on from them."""

    def __init__(self, folder: Path, seed: int, texts: dict[str, str]) -> None:
        self.path = folder / "mutants.json"
        self.lock = threading.Lock()
        joined = "\0".join(f"{name}\0{text}" for name, text in sorted(texts.items()))
        self.of = {"seed": seed, "sources": hashlib.sha256(joined.encode()).hexdigest()}
        self.mutants: dict[int, Mutant] = {}
        if self.path.exists():
            stored = json.loads(self.path.read_text("utf-8"))
            if {key: stored[key] for key in self.of} != self.of:
                sys.exit(
                    f"{self.path}: of other sources or another seed; remove it or use --folder"
                )
            for row in stored["mutants"]:
                mutant = Mutant(**{**row, "noticed_by": tuple(row["noticed_by"])})
                self.mutants[mutant.number] = mutant

    def add(self, mutant: Mutant) -> None:
        with self.lock:
            self.mutants[mutant.number] = mutant
            rows = [asdict(self.mutants[number]) for number in sorted(self.mutants)]
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps({**self.of, "mutants": rows}, indent=1), "utf-8")
            new.replace(self.path)
            say(f"{mutant.number}: {mutant.file}:{mutant.line}: {mutant.outcome}"
                f" in {mutant.seconds:.0f} s: {mutant.was}  ->  {mutant.became}")  # fmt: skip


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def known_survivors(path: Path = KNOWN) -> dict[tuple[str, str, str], str]:
    """The class of each survivor that somebody has looked at."""
    found = {}
    for row in tomllib.loads(path.read_text("utf-8")).get("survivor", []):
        assert row["class"] in CLASSES, row
        assert row["why"], row
        found[row["file"], row["was"], row["became"]] = str(row["class"])
    return found


def told(mutants: Iterable[Mutant], known: dict[tuple[str, str, str], str]) -> tuple[str, int]:
    """The list for people, and how many survivors nobody has classified or a rule should notice."""
    mutants = list(mutants)
    counts = Counter(one.outcome for one in mutants)
    lines = [", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())]
    open_ones = 0
    for one in mutants:
        if not one.is_open:
            continue
        kind = known.get((one.file, one.was, one.became), "not classified")
        open_ones += kind in ("not classified", "missed")
        where = "" if one.reached else ", where no case comes"
        lines.append(f"{one.file}:{one.line}: {one.outcome}{where}, {kind}")
        lines += [f"  - {one.was}", f"  + {one.became}"]
        if one.noticed_by:
            lines.append(f"  worse, and no failure: {', '.join(one.noticed_by)}")
    return "\n".join(lines) + "\n", open_ones


def builds_quickly(change: Change) -> bool:
    """Few sources are compiled again; a header is a part of nearly all, that of the kernels not."""
    return change.file.endswith(".cpp") or change.file.startswith("src/scan/")


class Todo:
    """Which looks are due: the sample of all changes first, and first what builds quickly, so that
    most is known soon."""

    def __init__(self, changes: Sequence[Change], record: Record, *, again: bool) -> None:
        self.changes = changes
        self.due: queue.SimpleQueue[tuple[int, bool]] = queue.SimpleQueue()
        known = record.mutants
        quickest_first = sorted(range(len(changes)), key=lambda n: not builds_quickly(changes[n]))
        for number in quickest_first:
            if number not in known or (again and known[number].is_open):
                self.due.put((number, True))
        for number in quickest_first:
            if not again and number in known and known[number].outcome == "sampled":
                self.due.put((number, False))

    def next(self) -> tuple[int, Change, bool] | None:
        """The number of a change, the change, and whether the sample is looked at."""
        try:
            number, quick = self.due.get_nowait()
        except queue.Empty:
            return None
        return number, self.changes[number], quick


def work(bench: Bench, todo: Todo, texts: dict[str, str], baseline: Baseline,
         lines_unreached: Lines, record: Record) -> None:  # fmt: skip
    """Judge changes until none is left."""
    while (one := todo.next()) is not None:
        number, change, quick = one
        begin = time.monotonic()
        outcome, noticed = judge(bench, change, baseline, quick=quick)
        if bench.stopped.is_set():
            return
        line = change.line(texts[change.file])
        reached = line not in lines_unreached.get(change.file, ())
        if quick and reached and outcome == "survived":
            outcome = "sampled"
            todo.due.put((number, False))
        was, became = change.lines(texts[change.file])
        before = 0.0 if quick else record.mutants[number].seconds
        seconds = round(before + time.monotonic() - begin, 1)
        record.add(Mutant(number, change.file, line, change.kind, was, became, outcome, noticed,
                          seconds, reached))  # fmt: skip


def options(words: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(
        prog="mutants", description="Does the catalogue notice a change of the reference server?"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200, help="number of changes (200)")
    parser.add_argument("--jobs", type=int, default=1, help="servers judged at once (1)")
    parser.add_argument(
        "--again", action="store_true", help="judge what survived again, by the cases of today"
    )
    parser.add_argument("--folder", type=Path, help="of builds and results (build/mutants/SEED)")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    given = options(words)
    folder = given.folder or ROOT / "build" / "mutants" / str(given.seed)
    folder.mkdir(parents=True, exist_ok=True)
    texts = sources()
    record = Record(folder, given.seed, texts)
    todo = Todo(drawn(texts, given.seed, given.count), record, again=given.again)
    if not todo.due.empty():
        stopped = threading.Event()
        for sign in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sign, lambda *_: stopped.set())
        benches = [Bench(folder / f"job-{job}", stopped) for job in range(given.jobs)]
        for bench in benches:
            bench.prepare()
        baseline = judge_baseline(benches[0])
        known_as = f"{record.of['sources']} {loading.load().version}"
        lines = unreached(folder / "reached", known_as, stopped)
        threads = [
            threading.Thread(target=work, args=(bench, todo, texts, baseline, lines, record))
            for bench in benches
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if stopped.is_set():
            sys.exit(
                f"stopped after {len(record.mutants)} changes; the same call goes on from there"
            )
    shown = [one for number, one in sorted(record.mutants.items()) if number < given.count]
    text, open_ones = told(shown, known_survivors())
    (folder / "mutants.txt").write_text(text, "utf-8")
    say(text)
    return 1 if open_ones or len(shown) < given.count else 0


if __name__ == "__main__":
    sys.exit(main())
