"""Whether a server keeps the contract of its folder: started, asked, stopped, started again.

In words for people: a row for each promise, with what was seen and what to do.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from httpmark.harness.http.address import endpoint
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.servers import Server, Tls
from httpmark.harness.servers import (
    certificates,
    contract,
    open_connections,
    proc_files,
    sockets,
    starting,
)
from httpmark.harness.servers.containers import ContainerServer
from httpmark.harness.servers.processes import ProcessServer
from httpmark.harness.servers.running import STOP_GRACE_S, Running
from httpmark.harness.servers.worker_load import busy_threads

PAGE = "images/README.md"
_FEW, _MANY = 1, 2  # the numbers of workers that are compared
_LOOKS, _LOOK_PAUSE_S, _REST_DEADLINE_S = 4, 0.05, 5.0  # until a server is at rest


class Seen(enum.StrEnum):
    """What a row says of a promise."""

    KEPT = "kept"
    BROKEN = "broken"
    NOT_SEEN = "not seen"
    NO_START = "no start"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One promise of a folder, and whether the server keeps it."""

    name: str
    verdict: Seen
    seen: str
    mend: str | None = None  # what to do, where it is not kept


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of one server."""

    name: str
    runtime: str
    version: str | None
    rows: tuple[Row, ...]

    @property
    def verdict(self) -> Seen:
        kinds = {row.verdict for row in self.rows}
        return next(
            (kind for kind in (Seen.BROKEN, Seen.NO_START) if kind in kinds), Seen.KEPT
        )  # fmt: skip


class Start(NamedTuple):
    """How a server is started for this."""

    runtime: str
    address: str
    run_id: str
    certificate: certificates.Pair


class _Size(NamedTuple):
    """What a running server consists of."""

    processes: int
    threads: int
    listeners: int

    def __str__(self) -> str:
        counts = zip(("process", "thread", "listening socket"), self, strict=True)
        return ", ".join(f"{count} {word}{_plural(word, count)}" for word, count in counts)


def _plural(word: str, count: int) -> str:
    if count == 1:
        return ""
    return "es" if word.endswith("s") else "s"


def verify(server: Server, how: Start) -> Verified:
    """Every row of one server, which is built by now.

    :raises Unusable: no port is free.
    """
    rows: list[Row] = []
    version = None
    sizes: dict[int, tuple[_Size, int]] = {}
    for workers in (_MANY, _FEW):
        began = time.monotonic()
        try:
            one, tls = _started(server, how, workers)
        except Unusable as error:
            rows.append(
                Row(
                    name="start", verdict=Seen.NO_START,
                    seen=f"with {workers} worker{_plural('worker', workers)}: {error}",
                    mend=f"see what it said, and {_key(how.runtime)}.start",
                )
            )  # fmt: skip
            continue
        took = time.monotonic() - began
        try:
            if workers == _MANY:
                version = one.version
                rows += [_ready(server, took), _version(server, one), _to_1_0(server, one)]
                rows += _capabilities(server, one, tls)
            sizes[workers] = _size(one), busy_threads(one)
            death = None if one.alive() else one.exit_reason()
        finally:
            began = time.monotonic()
            one.stop()
        if workers == _MANY:
            rows.append(_ending(one, death, time.monotonic() - began))
    if len(sizes) == 2:
        rows.append(_workers(server, sizes))
    return Verified(name=server.name, runtime=how.runtime, version=version, rows=tuple(rows))


def _started(server: Server, how: Start, workers: int) -> tuple[Running, Tls | None]:
    """The server at a port of its own, with short timeouts where it is asked things."""
    tls = None
    try:
        port = sockets.free_port(how.address)
        if "tls" in server.capabilities:
            pair = how.certificate
            tls_port = port
            while tls_port == port:
                tls_port = sockets.free_port(how.address)
            tls = Tls(port=tls_port, cert=pair.certificate, key=pair.key)
    except OSError as error:
        raise Unusable(str(error)) from error
    one = starting.start(
        server, how.runtime, address=how.address, port=port, workers=workers, cpus=None,
        run_id=how.run_id, tls=tls, conformance=workers == _MANY,
    )  # fmt: skip
    return one, tls


def _key(runtime: str) -> str:
    return "process" if runtime == "process" else "container"


def _ready(server: Server, took: float) -> Row:
    seen = f"GET {server.ready_path} answered {took:.1f} s after the start"
    return Row(name="ready", verdict=Seen.KEPT, seen=f"{seen}, of {server.ready_timeout_s:g} s")


def _version(server: Server, one: Running) -> Row:
    recipe = server.process if one.runtime == "process" else server.container
    key = f"{_key(one.runtime)}.version"
    assert recipe is not None
    if not recipe.version:
        seen = "no command tells the version"
        return Row(name="version", verdict=Seen.NOT_SEEN, seen=seen, mend=f"add {key}")
    if one.version is None:
        seen = f"{' '.join(recipe.version)} prints no version"
        return Row(name="version", verdict=Seen.BROKEN, seen=seen, mend=f"mend {key}")
    declared = server.version
    if declared[:1].isdigit() and "newer" not in declared and not one.version.startswith(declared):
        seen = f"{one.version} runs, and the manifest is made for {declared}"
        mend = "check its limits and settings against that version, and change version"
        return Row(name="version", verdict=Seen.BROKEN, seen=seen, mend=mend)
    return Row(name="version", verdict=Seen.KEPT, seen=one.version)


def _to_1_0(server: Server, one: Running) -> Row:
    """With which version it answers a request of HTTP/1.0: cases are judged by what is declared."""
    name = "HTTP/1.0"
    request = f"GET {server.ready_path} HTTP/1.0\r\nHost: {endpoint(one.address, one.port)}\r\n\r\n"
    deadline_s = contract.ASK_DEADLINE_S
    answer = sockets.ask(one.address, one.port, request.encode("ascii"), deadline_s=deadline_s)
    version = (answer or b"")[:8].decode("latin-1")
    if version not in ("HTTP/1.0", "HTTP/1.1"):
        return Row(name=name, verdict=Seen.NOT_SEEN, seen="no answer to a request of HTTP/1.0")
    seen = f"answered as {version}"
    if (version == "HTTP/1.0") is server.answers_1_0_as_1_0:
        return Row(name=name, verdict=Seen.KEPT, seen=seen)
    wanted = "true" if version == "HTTP/1.0" else "false"
    mend = f"say answers_1_0_as_1_0 = {wanted}"
    return Row(name=name, verdict=Seen.BROKEN, seen=seen, mend=mend)


def _capabilities(server: Server, one: Running, tls: Tls | None) -> Iterator[Row]:
    for capability in server.capabilities:
        place = contract.Place(one.address, one.port, files_only=server.files_only)
        if capability == "tls":
            assert tls is not None
            place = place._replace(port=tls.port, ca_file=tls.cert)
        try:
            seen = contract.check(capability, place)
            yield Row(name=capability, verdict=Seen.KEPT, seen=seen)
        except contract.Broken as error:
            mend = f"answer as {PAGE} says of {capability}"
            if capability != "hello":
                mend += f", or take {capability} out of capabilities"
            yield Row(name=capability, verdict=Seen.BROKEN, seen=str(error), mend=mend)


def _ending(one: Running, death: str | None, took: float) -> Row:
    """How it ended after SIGTERM, and whether anything of it was left."""
    name = "SIGTERM"
    if death is not None:
        seen = f"died before it was stopped: {death}"
        return Row(name=name, verdict=Seen.BROKEN, seen=seen, mend="see its last words")
    seen = f"{one.ending()} after {took:.1f} s"
    if isinstance(one, ContainerServer):
        seen = f"{one.exit_reason().partition(':')[0]} after {took:.1f} s"
        if one.is_deaf:
            seen = "the first process of a container does not get what it has no handler for"
            return Row(name=name, verdict=Seen.NOT_SEEN, seen=seen)
    if "SIGKILL" in seen:
        return Row(
            name=name, verdict=Seen.BROKEN,
            seen=f"it still ran {STOP_GRACE_S:g} s after SIGTERM, and was killed",
            mend="let it end at SIGTERM within 3 s",
        )  # fmt: skip
    left = one.left_behind() if isinstance(one, ProcessServer) else 0
    if left:
        return Row(
            name=name, verdict=Seen.BROKEN,
            seen=f"{seen}, and {left} process{_plural('process', left)} of it ran on",
            mend="let its first process end the others",
        )  # fmt: skip
    return Row(name=name, verdict=Seen.KEPT, seen=f"{seen}, nothing was left")


def _size(one: Running) -> _Size:
    """What it consists of at rest: a server may have a thread for each connection."""
    looks: list[_Size] = []
    end = time.monotonic() + _REST_DEADLINE_S
    while time.monotonic() < end:
        is_asked = open_connections.accepted_connections(one.port, one.pids()) > 0
        looks = [] if is_asked else [*looks[1 - _LOOKS :], _counted(one)]
        if len(looks) == _LOOKS and len(set(looks)) == 1:
            break
        time.sleep(_LOOK_PAUSE_S)
    return _counted(one)


def _counted(one: Running) -> _Size:
    pids = one.pids()
    threads = sum(len(proc_files.names_in_if_there(pid, "task")) for pid in pids)
    return _Size(len(pids), threads, open_connections.listening_sockets(one.port))


def _workers(server: Server, sizes: dict[int, tuple[_Size, int]]) -> Row:
    """Whether a second worker is there: as a process, thread or listener, or by CPU time."""
    name = "workers"
    (few, busy_few), (many, busy_many) = sizes[_FEW], sizes[_MANY]
    seen = f"1 worker: {few}; 2 workers: {many}"
    grows = [word for word, a, b in zip(_Size._fields, few, many, strict=True) if b > a]
    busy = f"{busy_few} and {busy_many} of the threads were busy under load"
    declared = server.workers
    if declared == "one":
        if grows:
            mend = 'say "processes" or "threads" in the key workers'
            return Row(name=name, verdict=Seen.BROKEN, seen=seen, mend=mend)
        return Row(name=name, verdict=Seen.KEPT, seen=f"one, whatever number is given: {many}")
    if declared:
        # A process brings a thread along.
        if declared in grows and not (declared == "threads" and "processes" in grows):
            return Row(name=name, verdict=Seen.KEPT, seen=seen)
        mend = "use {workers} in its start words or files, or correct the key workers"
        return Row(name=name, verdict=Seen.BROKEN, seen=f"not {declared}: {seen}", mend=mend)
    if grows:
        return Row(name=name, verdict=Seen.KEPT, seen=seen)
    if busy_few < 2 <= busy_many:
        return Row(name=name, verdict=Seen.KEPT, seen=f"{many}; {busy}")
    return Row(name=name, verdict=Seen.NOT_SEEN, seen=f"{seen}; {busy}")
