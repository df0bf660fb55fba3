"""The door to the native probe, which plays the steps of cases and records what came back.

The frame format stands at the head of ``native/probe`` sources; this is its other side.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import select
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from typing import IO

from httpmark.harness.firing.probe_frames import Play, decoded, encode
from httpmark.harness.model.cases import Case
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.servers import binaries

IN_FLIGHT = 64
_FEED_OCTETS = 1 << 16
_FEED_OCTETS_IN_TIME = 1 << 12
_READ_OCTETS = 1 << 18


class Probe:
    """One run of the native probe against one target.

    Iterate :meth:`fire` to the end, or leave the ``with`` block: the process is gone either way.
    """

    def __init__(
        self,
        address: str,
        port: int,
        *,
        in_flight: int = IN_FLIGHT,
        unix: str | None = None,
        tls: bool = False,
        ca_file: str | None = None,
        tls_name: str | None = None,
    ) -> None:
        """
        :param unix: the path of a Unix socket, instead of address and port.
        :param tls: every case in a TLS session of its own; ``ca_file`` verifies the certificate,
            as that of ``tls_name`` where that is not the address.
        """
        where = ("--unix", unix) if unix else ("--address", address, "--port", str(port))
        self.command = [binaries.need("probe"), *where, "--in-flight", str(in_flight)]
        if tls:
            self.command.append("--tls")
            if ca_file:
                self.command += ["--ca-file", ca_file]
            if ca_file or tls_name:  # servers of several names choose by it
                self.command += ["--tls-host", tls_name or address]
        self._process: subprocess.Popen[bytes] | None = None
        self.cpu_seconds = 0.0
        self.unfinished: list[Play] = []

    def __enter__(self) -> Probe:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the probe, if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def fire(self, cases: Iterable[Case], *, attempt: int = 1) -> Iterator[list[Exchange]]:
        """Play cases; yields exchanges in batches, in the order in which they ended.

        :raises Unusable: the probe itself could not go on; what it said is in the message.
        """
        return self.play((case, attempt) for case in cases)

    def play(self, plays: Iterable[Play], *, end: float | None = None) -> Iterator[list[Exchange]]:
        """The same, where each case says which attempt at it this is.

        :param end: when to break off (``time.monotonic``); ``unfinished`` is what was under way
            then. No case is made long before it is played, so that the plays can end in time.
        :raises Unusable: as ``fire``.
        """
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = self._process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        ahead = _FEED_OCTETS if end is None else _FEED_OCTETS_IN_TIME
        if end is not None:
            fcntl.fcntl(process.stdin, fcntl.F_SETPIPE_SZ, ahead)
        waiting: dict[int, Play] = {}
        trouble: list[BaseException | None] = []
        feeder = threading.Thread(
            target=_feed,
            args=(process.stdin, plays, waiting, trouble, ahead),
            name="probe-feeder",
            daemon=True,
        )
        feeder.start()
        try:
            if not (yield from _exchanges(process.stdout, waiting, end)):
                self.stop()
                feeder.join()
                self.unfinished = list(waiting.values())
                return
            said = process.stderr.read().decode("utf-8", "replace").strip()
            code = process.wait()
            if code != 0:
                raise Unusable(f"the probe cannot go on: {said or f'exit code {code}'}")
            feeder.join()
            if trouble[0] is not None:
                raise trouble[0]  # what went wrong in making the cases
            assert not waiting, f"the probe lost {len(waiting)} cases"
        finally:
            self.stop()
            feeder.join()
            for pipe in (process.stdout, process.stderr):
                pipe.close()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.cpu_seconds += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _feed(
    pipe: IO[bytes],
    plays: Iterable[Play],
    waiting: dict[int, Play],
    trouble: list[BaseException | None],
    ahead: int,
) -> None:
    """Write frames until the cases end or the probe goes; ``trouble`` gets what went wrong."""
    with contextlib.suppress(BaseException):  # it is raised again where the exchanges are read
        try:
            _write_frames(pipe, plays, waiting, ahead)
        finally:
            trouble.append(sys.exc_info()[1])


def _write_frames(
    pipe: IO[bytes], plays: Iterable[Play], waiting: dict[int, Play], ahead: int
) -> None:
    held = bytearray()
    with contextlib.suppress(BrokenPipeError), pipe:
        for number, play in enumerate(plays):
            waiting[number] = play
            held += encode(number, play[0])
            if len(held) >= ahead:
                if not _written(pipe, held):
                    return
                held.clear()
        _written(pipe, held)


def _written(pipe: IO[bytes], octets: bytearray) -> bool:
    """Whether the probe still takes frames."""
    # A pipe that was closed meanwhile is a ValueError.
    with contextlib.suppress(BrokenPipeError, ValueError):
        pipe.write(octets)
        pipe.flush()
        return True
    return False


def _exchanges(
    pipe: IO[bytes], waiting: dict[int, Play], end: float | None
) -> Generator[list[Exchange], None, bool]:
    """What the probe tells; whether it told all before the end."""
    held = b""
    descriptor = pipe.fileno()
    while True:
        if (
            end is not None
            and not select.select([descriptor], [], [], max(0.0, end - time.monotonic()))[0]
        ):
            return False
        piece = os.read(descriptor, _READ_OCTETS)
        if not piece:
            assert not held, "the probe's last frame is cut"
            return True
        held = held + piece if held else piece
        batch, used = decoded(held, waiting)
        held = held[used:]
        if batch:
            yield batch


class RunningProbe:
    """A probe that stays: one case at a time, for who decides by the answer what comes next."""

    def __init__(self, probe: Probe) -> None:
        self._process = subprocess.Popen(
            probe.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def __enter__(self) -> RunningProbe:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def play(self, case: Case) -> Exchange:
        """Play one case.

        :raises Unusable: the probe could not go on; what it said is in the message.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        waiting = {0: (case, 1)}
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(encode(0, case))
            self._process.stdin.flush()
        held = b""
        while piece := os.read(self._process.stdout.fileno(), _READ_OCTETS):
            held += piece
            batch, used = decoded(held, waiting)
            if batch:
                assert used == len(held), "an exchange nobody asked for"
                return batch[0]
        assert self._process.stderr is not None
        said = self._process.stderr.read().decode("utf-8", "replace").strip()
        raise Unusable(f"the probe cannot go on: {said or 'it ended'}")
