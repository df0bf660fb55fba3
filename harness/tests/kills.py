"""Commands that are killed at random moments: nothing stored is lost, nothing is left. A program;
see `make kills`.

Each kill is drawn from the seed, its number and how long the command usually takes. The line of a
broken law says what it was: `--once fuzz SIGTERM 5.09` does it again, as often as `--kills` says.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import random
import secrets
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared import kill_laws, native_server
from httpmark.harness.tests.shared.kill_laws import BEGIN, FOUND, RUN, SIGNALS, Kill, Killed, Task
from httpmark.harness.tests.shared.repository import ROOT

COMMANDS = ("run", "check", "bench", "compare", "fuzz")
_FUZZ_SECONDS = "4"
_TOLD_EVERY = 20
_EVERY_RESUMED = 3  # of the runs that are killed, one in so many is carried on


def options(words: Sequence[str] | None) -> argparse.Namespace:
    known = argparse.ArgumentParser(prog="kills", description=__doc__)
    known.add_argument("--kills", type=int, default=200)
    known.add_argument("--seed", type=int, help="of the moments; by default another each time")
    known.add_argument("--command", action="append", choices=COMMANDS, help="kill this one alone")
    known.add_argument("--once", nargs=3, metavar=("COMMAND", "WAY", "SECONDS"))
    known.add_argument("--folder", type=Path, default=ROOT / "build" / "kills")
    return known.parse_args(words)


@contextlib.contextmanager
def tasks() -> Iterator[dict[str, Task]]:
    """The commands by name, small ones, and the server that those need which start none."""
    served = f"{binaries.need('server')} --address 127.0.0.1 --port {{port}} --workers 1"
    here = ("--runtime", "process")
    load = ("--profile", "keepalive")
    with native_server.listening("null") as target:
        known = (
            Task(
                "run",
                ("run", *here, "--quick", "--suite", "smuggling", *load, "--server", "null",
                 "--out", RUN),
                "report: ",
            ),
            Task(
                "check",
                ("check", "--serve", served, "--quick", "--suite", "rfc", "--case", "9112/6.3",
                 "--case", "9112/3.2", "--out", RUN),
                "report: ", (0, 1, 4),
            ),
            Task(
                "bench",
                ("bench", *here, "--quick", *load, "--rounds", "1", "null", "--out", RUN),
                "report: ",
            ),
            Task(
                "compare", ("compare", *here, "--quick", *load, "--pairs", "3", "--margin",
                            "100", "reference", "null"),
                "keepalive", (0, 1, 4),
            ),
            Task(
                "fuzz", ("fuzz", target, "--seconds", _FUZZ_SECONDS, "--out", FOUND),
                "to repeat this search: ", (0, 1),
            ),
        )  # fmt: skip
        yield {one.name: one._replace(words=(*BEGIN, *one.words)) for one in known}


def drawn(seed: int, number: int, usual_s: dict[str, float]) -> tuple[str, Kill]:
    """Which command a kill is for, and the kill.

    :param usual_s: how long each command takes where it is not killed.
    """
    names = list(usual_s)
    name = names[number % len(names)]
    chance = random.Random(f"{seed} {number}")
    way = chance.choice(list(SIGNALS))
    return name, Kill(way, chance.random() * usual_s[name])


def usual(known: dict[str, Task], folder: Path) -> tuple[dict[str, float], list[str]]:
    """How long each command takes, and the laws that are broken where nobody kills it."""
    seconds, broken = {}, []
    for name, task in known.items():
        kill_laws.clear(folder)
        one = kill_laws.killed(task, Kill("", 0.0), folder)
        seconds[name] = one.seconds
        if one.broken:
            broken.append(f"{name}, not killed: {kill_laws.told(one.broken)}")
    return seconds, broken


def table(done: Sequence[tuple[str, Kill, Killed]]) -> str:
    """The kills by command and how; those that came too late; those that broke a law."""
    ways = [*SIGNALS, "too late", "broke a law"]
    counts: dict[str, Counter[str]] = {name: Counter() for name, _, _ in done}
    for name, kill, one in done:
        counts[name]["too late" if one.is_late else kill.way] += 1
        counts[name]["broke a law"] += bool(one.broken)
    total = sum(counts.values(), Counter[str]())
    rows = [["command", *ways]]
    rows += [
        [name, *(str(row[way]) for way in ways)] for name, row in (*counts.items(), ("all", total))
    ]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[bool]:
    """Whether no other program kills in a folder: two would clear it for each other."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def main(words: Sequence[str] | None = None) -> int:
    given = options(words)
    with _alone_in(given.folder) as is_alone:
        if is_alone:
            return _killed(given)
    print(f"kills: another one uses {given.folder}: name a --folder", file=sys.stderr)
    return 2


def _killed(given: argparse.Namespace) -> int:
    seed = given.seed if given.seed is not None else secrets.randbits(31)
    print(f"seed {seed}; {given.kills} kills", flush=True)
    began = time.monotonic()
    done: list[tuple[str, Kill, Killed]] = []
    with tasks() as known:
        if given.once is not None:
            name, way, after_s = given.once
            given.command = [name]
        known = {name: known[name] for name in given.command or COMMANDS}
        seconds, broken = usual(known, given.folder)
        print("usual: " + ", ".join(f"{name} {s:.1f} s" for name, s in seconds.items()), flush=True)
        for line in broken:
            print(line, flush=True)
        for number in range(given.kills):
            if number % _TOLD_EVERY == 0 and number:
                print(f"{number} of {given.kills}", flush=True)
            name, kill = drawn(seed, number, seconds)
            if given.once is not None:
                kill = Kill(way, float(after_s))
            kill_laws.clear(given.folder)
            resumes = name == "run" and number // len(known) % _EVERY_RESUMED == 0
            one = kill_laws.killed(known[name], kill, given.folder, resumes=resumes)
            done.append((name, kill, one))
            if one.broken:
                line = f"seed {seed}, kill {number}: {name}, {kill.way} after {kill.after_s:.2f} s"
                print(f"{line}: {kill_laws.told(one.broken)}", flush=True)
                broken.append(line)
    kill_laws.clear(given.folder)
    print(table(done))
    longest = max((one.seconds for _, kill, one in done if kill.way), default=0.0)
    print(
        f"{len(done)} kills in {(time.monotonic() - began) / 60:.0f} minutes, seed {seed}: "
        f"{len(broken)} broke a law; the slowest end came {longest:.1f} s after its signal"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    # Also where this program is told to end, nothing of it stays.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
