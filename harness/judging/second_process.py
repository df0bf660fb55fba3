"""A second process that judges a part of the families if there is much to judge.

It is a Python of its own that gets orders through a pipe and answers each. Where it cannot be had
or ends too soon, the first process judges all by itself.
"""

from __future__ import annotations

import collections
import contextlib
import os
import subprocess
import sys
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

import msgspec

from httpmark.harness.catalogue.loading import load as load_catalogue
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.family_results import FoldedWithDoubts, StoredServer, fold_with_doubts
from httpmark.harness.judging.quick_look import cases_of
from httpmark.harness.model.cases import Facts

# With this many cases, a second process is worth its start, which takes about a second.
_START_FROM = 10_000
# If it already runs, it gets a part from this many cases.
_SHARE_FROM = 1_000
_LOTS = 12  # a lot is this part of what is left
_LOTS_AHEAD = 2  # one waits while it judges another
_PROGRAM = f"from {__name__} import judge_for_another; judge_for_another()"


class Order(msgspec.Struct, frozen=True):
    """Families to judge, and where their exchanges are stored."""

    evidence: Path
    catalogue_version: str
    families: list[str]
    facts: Facts
    server: str
    quick: bool


class SecondProcess:
    """Another process that also judges.

    Start it early: it reads the catalogue first.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._owed = 0

    def __enter__(self) -> SecondProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def start(self, cases: int) -> None:
        """Start it if it does not run, there are enough cases, and a processor is free for it."""
        if self._process is None and cases >= _START_FROM and len(os.sched_getaffinity(0)) > 1:
            self._pipe, theirs = Pipe()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()], stderr=subprocess.DEVNULL,
                )  # fmt: skip

    @property
    def free(self) -> bool:
        """Whether it runs and should get another order."""
        return self._pipe is not None and self._owed < _LOTS_AHEAD

    def order(self, order: Order) -> None:
        """Have families judged."""
        assert self._pipe is not None
        self._owed += 1
        try:
            self._pipe.send(order)
        except OSError:
            self._stop()

    def answers(self, *, wait: bool) -> dict[str, FoldedWithDoubts]:
        """The results of the orders that are done; of all orders if ``wait``."""
        found: dict[str, FoldedWithDoubts] = {}
        while self._pipe is not None and self._owed and (wait or self._pipe.poll()):
            try:
                found |= self._pipe.recv()
                self._owed -= 1
            except (EOFError, OSError):
                self._stop()
        return found

    def _stop(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = self._pipe = None
        self._owed = 0


def judged_with(
    second: SecondProcess, stored: StoredServer, families: list[str], *, quick: bool
) -> dict[str, FoldedWithDoubts]:
    """All families judged, on two processors where ``second`` runs and there is much to judge.

    The largest are judged here, one by one. The second process gets the others in lots, one after
    the other, because nobody knows beforehand which take long. What it does not bring is judged
    here.
    """
    known = stored.catalogue
    sizes = {name: cases_of(known.families[name], quick=quick) for name in families}
    left = collections.deque(sorted(families, key=lambda name: -sizes[name]))
    is_much = sum(sizes.values()) >= _SHARE_FROM
    found: dict[str, FoldedWithDoubts] = {}
    stored.evidence.flush()
    while left:
        while is_much and left and second.free:
            lot = _lot(left, sizes)
            path = stored.evidence.path
            second.order(Order(path, known.version, lot, stored.facts, stored.name, quick))
        if left:
            name = left.popleft()
            found[name] = fold_with_doubts(stored, name, quick=quick)
        found |= second.answers(wait=not left)
    for name in families:
        if name not in found:
            found[name] = fold_with_doubts(stored, name, quick=quick)
    return found


def _lot(left: collections.deque[str], sizes: dict[str, int]) -> list[str]:
    """The smallest families, taken off, of a small part of all that is left."""
    room = sum(sizes[name] for name in left) / _LOTS
    lot = [left.pop()]
    room -= sizes[lot[0]]
    while left and sizes[left[-1]] <= room:
        lot.append(left.pop())
        room -= sizes[lot[-1]]
    return lot


def judge_for_another() -> None:
    """The second process: reads orders from the pipe that it is given until that is closed.

    An order of another catalogue is answered with nothing.
    """
    with Connection(int(sys.argv[1])) as pipe, contextlib.suppress(EOFError):
        known = load_catalogue()
        while True:
            order: Order = pipe.recv()
            found: dict[str, FoldedWithDoubts] = {}
            if known.version == order.catalogue_version:
                with Evidence(order.evidence) as evidence:
                    stored = StoredServer(known, order.facts, evidence, order.server)
                    for name in order.families:
                        found[name] = fold_with_doubts(stored, name, quick=order.quick)
            pipe.send(found)
