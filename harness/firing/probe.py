"""The native probe as a process: it plays the steps of cases and records what comes back.

:class:`Probe` plays many cases at once. :class:`RunningProbe` stays and plays one at a time.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Generator, Iterable, Iterator
from typing import IO

from httpmark.harness.firing.probe_frames import Play, decoded, encode
from httpmark.harness.model.cases import Case
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.exchanges import Attempt, Exchange
from httpmark.harness.servers import binaries

IN_FLIGHT = 64
# Frames are written in pieces of this size. Where time may run out the pieces are smaller: then no
# case is made long before it is played.
_FEED_BYTES = 1 << 16
_FEED_BYTES_IN_TIME = 1 << 12
_READ_BYTES = 1 << 18
_NOT_UNDERSTOOD = 2  # exit code: the frames are not those of its own layout, so it is an older one


def _started(command: list[str]) -> subprocess.Popen[bytes]:
    """The probe in a process group of its own: Ctrl-C in a terminal is for us, who stop it."""
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0,
    )  # fmt: skip


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
        connections_max: int | None = None,
        unix: str | None = None,
        tls: bool = False,
        ca_file: str | None = None,
        tls_name: str | None = None,
    ) -> None:
        """
        :param in_flight: cases on whose connections something went by in the last 50 ms. Those
            that wait are not counted.
        :param connections_max: those that wait are; None: thousands wait together.
        :param unix: the path of a Unix socket, instead of address and port.
        :param tls: plays every case in a TLS session of its own. ``ca_file`` verifies the
            certificate; ``tls_name`` is the name in it, if that is not the address.
        """
        where = ("--unix", unix) if unix else ("--address", address, "--port", str(port))
        self.command = [binaries.need("probe"), *where, "--in-flight", str(in_flight)]
        if connections_max is not None:
            self.command += ["--in-flight-max", str(connections_max)]
        if tls:
            self.command.append("--tls")
            if ca_file:
                self.command += ["--ca-file", ca_file]
            if ca_file or tls_name:  # servers with several names choose by it
                self.command += ["--tls-host", tls_name or address]
        self._process: subprocess.Popen[bytes] | None = None
        self.cpu_seconds = 0.0

    def __enter__(self) -> Probe:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the probe, if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def fire(
        self, cases: Iterable[Case], *, attempt: int = Attempt.FIRST
    ) -> Iterator[list[Exchange]]:
        """Play cases; yields exchanges in batches, in the order in which they ended.

        :raises Unusable: the probe itself could not go on; what it said is in the message.
        """
        return self.play((case, attempt) for case in cases)

    def play(self, plays: Iterable[Play]) -> Generator[list[Exchange], None, None]:
        """The same, where each case says which attempt at it this is.

        :raises Unusable: as ``fire``.
        """
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = self._process = _started(self.command)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        waiting: dict[int, Play] = {}
        trouble: list[BaseException | None] = []
        feeder = threading.Thread(
            target=_feed,
            args=(process.stdin, plays, waiting, trouble),
            name="probe-feeder",
            daemon=True,
        )
        feeder.start()
        try:
            is_cut = yield from _exchanges(process.stdout, waiting)
            said = process.stderr.read().decode("utf-8", "replace").strip()
            code = process.wait()
            if code != 0:
                mend = "; build it again: make setup" if code == _NOT_UNDERSTOOD else ""
                raise Unusable(f"the probe cannot go on: {said or f'exit code {code}'}{mend}")
            feeder.join()
            if trouble[0] is not None:
                raise trouble[0]  # making the cases failed
            assert not is_cut, "the probe's last frame is cut"
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
) -> None:
    """Write frames until the cases end or the probe ends; ``trouble`` gets what went wrong."""
    with contextlib.suppress(BaseException):  # raised again where exchanges are read
        try:
            _write_frames(pipe, plays, waiting)
        finally:
            trouble.append(sys.exc_info()[1])


def _write_frames(pipe: IO[bytes], plays: Iterable[Play], waiting: dict[int, Play]) -> None:
    held = bytearray()
    with contextlib.suppress(BrokenPipeError), pipe:
        for number, play in enumerate(plays):
            waiting[number] = play
            held += encode(number, play[0])
            if len(held) >= _FEED_BYTES:
                if not _written(pipe, held):
                    return
                held.clear()
        _written(pipe, held)


def _written(pipe: IO[bytes], frames: bytearray) -> bool:
    """Whether the probe still takes frames."""
    # Writing to a pipe that was closed meanwhile raises ValueError.
    with contextlib.suppress(BrokenPipeError, ValueError):
        pipe.write(frames)
        pipe.flush()
        return True
    return False


def _exchanges(pipe: IO[bytes], waiting: dict[int, Play]) -> Generator[list[Exchange], None, bool]:
    """Exchanges as they come; whether the last one is cut."""
    held = b""
    descriptor = pipe.fileno()
    while True:
        piece = os.read(descriptor, _READ_BYTES)
        if not piece:
            return bool(held)
        held = held + piece if held else piece
        batch, used = decoded(held, waiting)
        held = held[used:]
        if batch:
            yield batch


class RunningProbe:
    """A probe that keeps running and plays one case at a time.

    For callers that decide by the answer what to send next.
    """

    def __init__(self, probe: Probe) -> None:
        self._process = _started(probe.command)

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
        waiting: dict[int, Play] = {0: (case, Attempt.FIRST)}
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(encode(0, case))
            self._process.stdin.flush()
        held = b""
        while piece := os.read(self._process.stdout.fileno(), _READ_BYTES):
            held += piece
            batch, used = decoded(held, waiting)
            if batch:
                assert used == len(held), "an exchange that was not asked for"
                return batch[0]
        assert self._process.stderr is not None
        said = self._process.stderr.read().decode("utf-8", "replace").strip()
        raise Unusable(f"the probe cannot go on: {said or 'it ended'}")
