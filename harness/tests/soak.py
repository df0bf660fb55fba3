"""Does the reference server stay as it was under hours of mixed load? A program; see `make soak`.

Clients that keep the rules and clients that break them visit the server at random, by a seed, and
count what they do. Meanwhile the server's memory, descriptors and live connections are sampled. In
the end all clients leave, and the laws of :func:`broken` are held.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared import child_process, soak_clients
from httpmark.harness.tests.shared.soak_clients import Crowd, Place, Tally, Wrong, opened

ENGINES = ("epoll", "uring")
WORKERS = 2
SAMPLE_S = 2.0
FILL_S = 60.0
PATIENCE_S = 60.0
# The least that malloc gives away is 32 bytes. A server that loses one such piece on each
# connection grows by twice the bound.
BYTES_PER_CONNECTION_MAX = 16
# What the memory in use varies by without a leak, between the medians of two quarters: pages, and
# buffers of answers that are under way. Short soaks find no smaller leak than this.
NOISE_BYTES = 1 << 20
# The name of each counter of /metrics, and of the tally that the clients keep of the same.
COUNTERS = {
    "connections_accepted": "connections",
    "requests": "requests",
    "received_bytes": "sent",
    "sent_bytes": "received",
    "refused": "refused",
    "timeouts": "timeouts",
}
_METRICS = b"GET /metrics HTTP/1.1\r\nHost: soak\r\nConnection: close\r\n\r\n"


class Ended(Exception):
    """The server ended, or stopped answering, while it was soaked."""


@dataclass(frozen=True)
class Sample:
    """The server at one moment."""

    at_s: float
    rss_bytes: int
    descriptors: int
    connections: int
    """That are open, without the one that asks."""
    accepted: int
    """Connections since it was started."""


@dataclass(frozen=True)
class Soaked:
    """What was seen of one server, from its start to its end."""

    engine: str
    seconds: float
    base: Sample
    """Before the clients came."""
    samples: tuple[Sample, ...]
    left: Sample
    """After they had left."""
    counters: Mapping[str, int]
    """What the server has counted in all, by the names of :data:`COUNTERS`; ``closed``, too."""
    tallies: Mapping[str, Tally]
    wrong: tuple[str, ...]
    """What clients missed."""
    answers: bool
    """In the end, GET /hello."""
    exit_code: int | None
    """After SIGTERM; None: it did not end."""
    said: str = ""
    """On standard error."""


@dataclass(frozen=True)
class Growth:
    """Memory in the second half of a soak, by the medians of its two quarters."""

    bytes: float
    """From the middle of the third quarter to that of the last one."""
    seconds: float
    connections: int
    """Accepted between the two."""

    @property
    def bound(self) -> float:
        """The most that is no leak, in bytes."""
        return max(NOISE_BYTES, BYTES_PER_CONNECTION_MAX * self.connections)

    @property
    def per_hour(self) -> float:
        return self.bytes / self.seconds * 3600 if self.seconds else 0.0


def growth(samples: Sequence[Sample]) -> Growth:
    """How the memory moved once everything had been allocated that the load needs.

    Medians, as an answer of a mebibyte that is under way is in some samples and not in others.
    """
    half = samples[len(samples) // 2 :]
    third, last = half[: len(half) // 2], half[len(half) // 2 :]
    if not third:
        return Growth(0.0, 0.0, 0)

    def middle(part: Sequence[Sample], key: str) -> float:
        return float(statistics.median(getattr(one, key) for one in part))

    return Growth(
        bytes=middle(last, "rss_bytes") - middle(third, "rss_bytes"),
        seconds=middle(last, "at_s") - middle(third, "at_s"),
        connections=int(middle(last, "accepted") - middle(third, "accepted")),
    )


def between(tallies: Mapping[str, Tally], name: str) -> tuple[int, int]:
    """The least and the most that all clients did of one thing."""
    all_of_it = [getattr(one, name) for one in tallies.values()]
    return sum(one.least for one in all_of_it), sum(one.most for one in all_of_it)


def broken(soaked: Soaked) -> list[str]:
    """The laws that do not hold, each as a sentence."""
    found = [f"a client: {one}" for one in soaked.wrong]
    grown = growth(soaked.samples)
    if grown.bytes > grown.bound:
        found.append(
            f"memory grew by {grown.bytes:,.0f} bytes in {grown.seconds:,.0f} s and "
            f"{grown.connections:,} connections; at most {grown.bound:,.0f} are no leak"
        )
    if soaked.left.descriptors != soaked.base.descriptors:
        found.append(
            f"{soaked.left.descriptors} descriptors after all clients had left, "
            f"{soaked.base.descriptors} before they came"
        )
    if soaked.left.connections:
        found.append(f"{soaked.left.connections} connections are open after all clients had left")
    for counter, name in COUNTERS.items():
        least, most = between(soaked.tallies, name)
        if not least <= soaked.counters[counter] <= most:
            found.append(
                f"the server counted {soaked.counters[counter]:,} of {counter}, "
                f"the clients {least:,} to {most:,}"
            )
    if not soaked.answers:
        found.append("GET /hello has no answer in the end")
    if soaked.exit_code != 0:
        found.append(f"SIGTERM: exit code {soaked.exit_code}: {soaked.said}")
    return found


class Server:
    """The server while it is soaked: its samples and its counters."""

    def __init__(self, pid: int, place: Place) -> None:
        self.place = place
        self.tally = Tally()
        """What asking for its counters did."""
        self.last_answer = 0
        """Bytes of the last answer to that."""
        self._folder = Path("/proc", str(pid))
        self._began = time.monotonic()

    def counters(self) -> dict[str, int]:
        """Its counters, summed over its workers; this request is in them, and its answer is not."""
        received = self.tally.received.least
        with opened(self.place, self.tally) as wire:
            wire.send(_METRICS, requests=1)
            text = wire.answer(200).decode()
            wire.rest()
        self.last_answer = self.tally.received.least - received
        found: dict[str, int] = {}
        for name, value in re.findall(r'^httpmark_(\w+)_total\{worker="\d+"\} (\d+)$', text, re.M):
            found[name] = found.get(name, 0) + int(value)
        return found

    def descriptors(self) -> int:
        return len(list((self._folder / "fd").iterdir()))

    def sample(self) -> Sample:
        counted = self.counters()
        status = (self._folder / "status").read_text()
        resident = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert resident is not None
        return Sample(
            at_s=time.monotonic() - self._began,
            rss_bytes=int(resident[1]) * 1024,
            descriptors=self.descriptors(),
            connections=counted["connections_accepted"] - counted["connections_closed"] - 1,
            accepted=counted["connections_accepted"],
        )

    def is_back_at(self, descriptors: int) -> bool:
        """Whether it soon has no more descriptors than these."""
        end = time.monotonic() + PATIENCE_S
        while self.descriptors() > descriptors and time.monotonic() < end:
            time.sleep(0.02)
        return self.descriptors() <= descriptors

    def settled(self) -> Sample:
        """A sample of before any client came."""
        fewest = self.descriptors()
        self.counters()  # what the first request allocates is no leak
        self.is_back_at(fewest)
        now = self.sample()
        self.is_back_at(fewest)
        return Sample(**{**asdict(now), "descriptors": self.descriptors()})

    def left(self, base: Sample) -> Sample:
        """A sample once it has seen that all clients have left; or the last one, if it does not."""
        self.is_back_at(base.descriptors)
        end = time.monotonic() + PATIENCE_S
        while (now := self.sample()).connections and time.monotonic() < end:
            time.sleep(0.1)
        # The connection that asked is closed by the server just after its client has seen the end.
        self.is_back_at(base.descriptors)
        return Sample(**{**asdict(now), "descriptors": self.descriptors()})


@contextlib.contextmanager
def started(
    program: Sequence[str], files: Path
) -> Iterator[tuple[subprocess.Popen[str], Server, Path]]:
    """The server, and the file of what it says on standard error."""
    soak_clients.lay_files(files)
    said = files.parent / "said.txt"
    with (
        said.open("w", encoding="utf-8") as errors,
        child_process.start(program, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            port = re.search(r":(\d+)$", line.strip())
            if port is None:
                raise SystemExit(f"soak: no server: {said.read_text('utf-8').strip()}")
            yield process, Server(process.pid, Place(int(port[1]), files)), said
        finally:
            process.kill()


def program_of(engine: str, files: Path) -> list[str]:
    return [
        binaries.need("server"), "--port", "0", "--workers", str(WORKERS), "--engine", engine,
        "--metrics", "--static", str(files),
        "--idle-timeout-s", str(soak_clients.IDLE_TIMEOUT_S),
        "--connections-max", str(soak_clients.CONNECTIONS_MAX),
    ]  # fmt: skip


def has_engine(engine: str) -> bool:
    """Whether the server was built with it and the kernel allows it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        child_process.start(
            program_of(engine, Path(folder)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        process.kill()
    return line.startswith("listening on ")


def soak(
    engine: str, *, seconds: float, seed: int, folder: Path, program: Sequence[str] | None = None
) -> Soaked:
    """Start a server, let the clients visit it for so long, and see what is left.

    :param folder: an empty one, for the files that it serves.
    :param program: another server's command, in place of the reference server's.
    :raises Ended: it ended too early, or its counters cannot be asked for any more.
    """
    files = folder / "files"
    files.mkdir()
    begun = time.monotonic()
    with started(program or program_of(engine, files), files) as (process, server, said):
        try:
            base = server.settled()
            crowd = Crowd(server.place, seed)
            samples = visited(server, crowd, base, seconds=seconds, draw=random.Random(seed))
            took = time.monotonic() - begun
            left = server.left(base)
            answers = _answers(server)
            counted = server.counters()
        except (OSError, Wrong) as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)  # it may be ending just now
            raise Ended(
                f"{engine}: after {time.monotonic() - begun:,.0f} s: {error}; exit code "
                f"{process.poll()}: {said.read_text('utf-8').strip()}"
            ) from error
        # The answer to the question for the counters is not among them.
        server.tally.received.add(-server.last_answer)
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_S)
        return Soaked(
            engine=engine, seconds=took, base=base, samples=tuple(samples), left=left,
            counters=counted, tallies={**crowd.tallies, "asks for counters": server.tally},
            wrong=tuple(crowd.wrong), answers=answers,
            exit_code=process.poll(), said=said.read_text("utf-8").strip(),
        )  # fmt: skip


def visited(
    server: Server, crowd: Crowd, base: Sample, *, seconds: float, draw: random.Random
) -> list[Sample]:
    """The samples of so many seconds with all clients, who have left in the end."""
    end = time.monotonic() + seconds
    fill_at = time.monotonic() + min(FILL_S, seconds / 2)
    samples = []
    crowd.come()
    try:
        while time.monotonic() < end:
            time.sleep(SAMPLE_S)
            samples.append(server.sample())
            if time.monotonic() >= fill_at:
                crowd.fill(draw, lambda: server.is_back_at(base.descriptors))
                fill_at = time.monotonic() + FILL_S
    finally:
        crowd.leave()
    return samples


def _answers(server: Server) -> bool:
    with opened(server.place, server.tally) as wire:
        wire.send(soak_clients.GET, requests=1)
        return wire.answer(200) == b"Hello World!"


def told(soaked: Soaked) -> str:
    """A table for people: memory and descriptors over time, counts of both sides, and the laws."""
    lines = [f"{soaked.engine}: {soaked.seconds:,.0f} s"]
    lines.append("    second   memory MiB   descriptors   connections")
    step = max(1, len(soaked.samples) // 8)
    for one in [soaked.base, *soaked.samples[step - 1 :: step], soaked.left]:
        lines.append(
            f"  {one.at_s:8,.0f}   {one.rss_bytes / (1 << 20):10.2f}"
            f"   {one.descriptors:11}   {one.connections:11}"
        )
    grown = growth(soaked.samples)
    lines.append(
        f"  memory of the second half: {grown.bytes / 1024:+,.0f} KiB in {grown.seconds:,.0f} s "
        f"({grown.per_hour / 1024:+,.0f} KiB an hour) and {grown.connections:,} connections; "
        f"at most {grown.bound / 1024:,.0f} KiB are no leak"
    )
    lines.append(f"  {'':22}{'server':>16}{'clients, least':>18}{'most':>18}")
    for counter, name in COUNTERS.items():
        least, most = between(soaked.tallies, name)
        lines.append(f"  {counter:22}{soaked.counters[counter]:16,}{least:18,}{most:18,}")
    found = broken(soaked)
    lines += [f"  broken: {one}" for one in found] or ["  all laws hold"]
    return "\n".join(lines)


def as_data(soaked: Soaked) -> dict[str, object]:
    """The same for programs."""
    grown = growth(soaked.samples)
    return {
        **asdict(soaked),
        "growth": {**asdict(grown), "bound": grown.bound, "bytes_per_hour": grown.per_hour},
        "broken": broken(soaked),
    }


def main(words: Sequence[str] | None = None) -> int:
    known = argparse.ArgumentParser(prog="soak", description=__doc__)
    known.add_argument("--seconds", type=float, default=3600, help="for each engine (3600)")
    known.add_argument("--seed", type=int, default=1, help="of what clients do when (1)")
    known.add_argument("--engine", action="append", choices=ENGINES, help="only it; repeatable")
    known.add_argument("--json", type=Path, help="write all that was seen to this file")
    given = known.parse_args(words)
    done: list[Soaked] = []
    absent: list[str] = []
    for engine in given.engine or ENGINES:
        if not has_engine(engine):
            absent.append(engine)
            print(f"{engine}: not on this machine")
            continue
        try:
            with tempfile.TemporaryDirectory() as folder:
                done.append(
                    soak(engine, seconds=given.seconds, seed=given.seed, folder=Path(folder))
                )
        except Ended as error:
            print(f"{error}\n  broken: the server ended, or stopped answering", flush=True)
            return 1
        print(told(done[-1]), flush=True)
    if given.json:
        told_all = [as_data(one) for one in done]
        given.json.write_text(json.dumps(told_all, indent=1), "utf-8")
    # An engine that was asked for by name must be there.
    is_lacking = not done or any(one in absent for one in given.engine or ())
    return 1 if is_lacking or any(broken(one) for one in done) else 0


if __name__ == "__main__":
    sys.exit(main())
