"""What the figures are measured with: servers, costs of theirs, and rows.

Costs are CPU time (user + system) of the server process per request, from the scheduler's own
account in nanoseconds; servers are interleaved, so that what else the machine does falls on all of
them; a ratio is the median of the ratios of neighbouring samples, with the distribution-free
interval of that median (order statistics) that holds at least 95 %.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path


class Server:
    """A process that listens on a free port; leaves with the context."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        cpu: int | None = None,
        file: tuple[Path, str] | None = None,
    ) -> None:
        """In the words, and in the text of a file to be written before, PORT is its port."""
        self.name = name
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        words = [str(word).replace("PORT", str(self.port)) for word in command]
        if file is not None:
            file[0].write_text(file[1].replace("PORT", str(self.port)))
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if cpu is not None:
            os.sched_setaffinity(self.process.pid, {cpu})
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        self.process.kill()
        sys.exit(f"figures: {words[0]} does not start: run {' '.join(words)} to see why")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(30)

    def cpu_ns(self) -> int:
        """CPU time of all its threads so far, ns."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)

    def kib(self, key: str) -> int:
        """A size of /proc/PID/status, KiB."""
        found = re.search(rf"{key}:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1])


def cost_ns(
    server: Server,
    load: Path,
    seconds: float,
    options: Sequence[str],
    scheme: str = "http",
    path: str = "/hello",
) -> float:
    """CPU ns of the server per request, over one run of the generator."""
    command = [str(load), "--duration-s", str(seconds), "--threads", "1", "--json", *options]
    before = server.cpu_ns()
    done = subprocess.run(
        [*command, f"{scheme}://127.0.0.1:{server.port}{path}"],
        capture_output=True,
        text=True,
        check=False,
    )
    after = server.cpu_ns()
    if done.returncode != 0:
        sys.exit(f"figures: {server.name}: {done.stderr.strip() or done.stdout.strip()}")
    return (after - before) / float(json.loads(done.stdout)["requests"])


def sample(
    servers: Sequence[Server],
    load: Path,
    pairs: int,
    seconds: float,
    options: Sequence[str],
    scheme: str = "http",
) -> list[list[float]]:
    """`pairs` costs of each server, taken in turn and in turned order."""
    costs: list[list[float]] = [[] for _ in servers]
    for turn in range(pairs):
        order = range(len(servers)) if turn % 2 == 0 else reversed(range(len(servers)))
        for index in order:
            costs[index].append(cost_ns(servers[index], load, seconds, options, scheme))
    return costs


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Bounds of the median that hold at least 95 %: the k-th smallest and largest (sign test)."""
    n, k, outside = len(values), 0, 0.0
    while True:
        outside += 2 * math.comb(n, k) / 2**n
        if outside > 0.05:
            break
        k += 1
    ordered = sorted(values)
    k = max(k, 1)
    return ordered[k - 1], ordered[n - k]


def say(line: str) -> None:
    sys.stdout.write(line.rstrip() + "\n")
    sys.stdout.flush()


def row(figure: str, aim: str, measured: str, met: bool | None) -> None:
    """One line of the table; `met` None where there is no aim or it could not be measured."""
    verdict = {True: "met", False: "MISSED", None: ""}[met]
    say(f"{figure:<52} {aim:<26} {measured:<58} {verdict}")


def ratio_row(
    figure: str, aim: str, a: Sequence[float], b: Sequence[float], bound: float | None
) -> None:
    """The ratio of two interleaved series; met when the whole interval is at or under the bound."""
    ratios = [x / y for x, y in zip(a, b, strict=True)]
    low, high = interval(ratios)
    # The quotient of the two rows above is another figure.
    text = f"{statistics.median(ratios):.3f} ({low:.3f}-{high:.3f}), median of {len(ratios)} pairs"
    row(figure, aim, text, None if bound is None else high <= bound)


def cost_row(figure: str, aim: str, costs: Sequence[float], bound: float | None) -> None:
    median = statistics.median(costs)
    text = f"{median:.1f} ns ({min(costs):.1f}-{max(costs):.1f}), {len(costs)} samples"
    row(figure, aim, text, None if bound is None else median <= bound)


def output_of(program: Path) -> str:
    """What a benchmark program prints."""
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout
