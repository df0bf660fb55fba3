"""Do the harness's readers hold their laws whatever they read? A program; see `make fuzz-readers`.

Inputs are mutations of files of this repository. One that reaches a pair of lines in a row that no
input reached before is kept and mutated in turn. What breaks a law is saved and told.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from httpmark.harness.tests.shared.fuzzed_readers import READERS, Reader, held, mutated
from httpmark.harness.tests.shared.repository import ROOT

# Of processor time: on a busy machine the clock proves nothing.
CPU_S_MAX = 10.0
# What reading may take beside what the process has already; inputs have 60,000 bytes at most.
MEMORY_BYTES_MAX = 256 << 20
KEPT_MAX = 400
_TRACED = str(ROOT / "harness")
_NOT_TRACED = str(ROOT / "harness" / "tests")


class Hung(Exception):
    """An input took too long."""


class Edges:
    """Pairs of lines of the harness that ran one after the other."""

    def __init__(self) -> None:
        self.seen: set[tuple[CodeType, int, int]] = set()

    def _enter(self, frame: FrameType, _event: str, _value: Any) -> Callable[..., Any] | None:
        name = frame.f_code.co_filename
        if not name.startswith(_TRACED) or name.startswith(_NOT_TRACED):
            return None
        last = 0

        def step(frame: FrameType, event: str, _value: Any) -> Callable[..., Any]:
            nonlocal last
            if event == "line":
                self.seen.add((frame.f_code, last, frame.f_lineno))
                last = frame.f_lineno
            return step

        return step

    @contextmanager
    def watching(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)


def _late(_signal: int, _frame: FrameType | None) -> None:
    raise Hung(f"more than {CPU_S_MAX:.0f} s of processor time")


@contextmanager
def bounded() -> Iterator[None]:
    """Processor time and memory are bounded inside."""
    before = signal.signal(signal.SIGVTALRM, _late)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY_BYTES_MAX
    resource.setrlimit(resource.RLIMIT_AS, (most if hard < 0 else min(most, hard), hard))
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGVTALRM, before)


@dataclass(frozen=True)
class Finding:
    """An input that broke a law, and how."""

    octets: bytes
    why: str


@dataclass
class Fuzzed:
    """What fuzzing one reader came to."""

    name: str
    inputs: int = 0
    refused: int = 0
    """Inputs with the error that the reader documents."""
    edges: int = 0
    kept: int = 0
    findings: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        found = f"{len(self.findings)} findings" if self.findings else "no finding"
        return (
            f"{self.name}: {self.inputs:,} inputs, {self.refused:,} refused as documented, "
            f"{self.edges:,} edges reached, {self.kept} kept, {found}"
        )


def tried(reader: Reader, octets: bytes, folder: Path, draw: random.Random) -> str | Finding:
    """What a reader complained of, or the finding."""
    try:
        with bounded():
            return held(reader, octets, folder, draw)
    except Exception as error:
        # Whatever it is, it is what is searched for.
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        return Finding(octets, f"{type(error).__name__}: {error!s:.300} ({where})")
    finally:
        for one in folder.iterdir():
            one.unlink()


def fuzz(
    reader: Reader,
    folder: Path,
    *,
    seed: int,
    inputs: int = sys.maxsize,
    seconds: float = 1e9,
    findings_max: int = 1,
) -> Fuzzed:
    """Let one reader read so many inputs, or for so long.

    :param folder: an empty one for its files.
    :param findings_max: stop when so many have been found, each raised at another line.
    """
    draw = random.Random(f"{seed} {reader.name}")
    edges = Edges()
    done = Fuzzed(reader.name)
    pool = list(reader.samples())
    told: set[str] = set()
    end = time.monotonic() + seconds
    first = list(pool)
    while done.inputs < inputs and time.monotonic() < end:
        octets = first.pop() if first else mutated(reader, draw.choice(pool), folder, draw)
        before = len(edges.seen)
        with edges.watching():
            said = tried(reader, octets, folder, draw)
        done.inputs += 1
        if isinstance(said, Finding):
            where = said.why.rpartition("(")[2]
            if where not in told:
                told.add(where)
                done.findings.append(said)
            if len(done.findings) >= findings_max:
                break
            continue
        done.refused += bool(said)
        if len(edges.seen) > before and done.inputs > len(pool):
            done.kept += 1
            pool.append(octets)
            if len(pool) > KEPT_MAX:
                pool.pop(draw.randrange(len(pool)))
    done.edges = len(edges.seen)
    return done


def main(words: Sequence[str] | None = None) -> int:
    known = argparse.ArgumentParser(prog="fuzz_readers", description=__doc__)
    names = [one.name for one in READERS]
    known.add_argument("--reader", action="append", choices=names, help="only it; repeatable")
    known.add_argument("--seconds", type=float, default=60, help="for each reader (60)")
    known.add_argument("--seed", type=int, default=0, help="0: another search each time")
    known.add_argument(
        "--found", type=Path, default=ROOT / "build" / "fuzz" / "found", help="where finds go"
    )
    given = known.parse_args(words)
    seed = given.seed or random.SystemRandom().randrange(1, 1 << 31)
    print(f"seed {seed}", flush=True)
    is_clean = True
    for reader in READERS:
        if given.reader and reader.name not in given.reader:
            continue
        folder = Path(tempfile.mkdtemp())
        try:
            done = fuzz(reader, folder, seed=seed, seconds=given.seconds, findings_max=10)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(done, flush=True)
        for number, one in enumerate(done.findings):
            is_clean = False
            file = given.found / f"{reader.name}-{seed}-{number}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(one.octets)
            print(f"  {file}: {one.why}", flush=True)
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
