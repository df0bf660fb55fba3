"""What generators cost: CPU ns per response of httpmark-load, beside wrk and h2load.

The engines load the null server, which answers faster than any of them asks. They take turns in
random order within blocks, so that a disturbance of the machine affects all of them alike. Each
window has a fresh null server on a processor of its own. The cost of wrk and h2load includes
opening their connections; they check only the status of an answer.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
from collections.abc import Callable, Iterator, Sequence

import msgspec

from httpmark.harness.load import contestants, placing, statistics
from httpmark.harness.load import races as load_races
from httpmark.harness.load.engines import by_name, launch
from httpmark.harness.load.engines.h2load import H2load
from httpmark.harness.load.engines.native import Native
from httpmark.harness.load.engines.wrk import Wrk
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadPlan
from httpmark.harness.model.servers import Tls
from httpmark.harness.servers import certificates, manifests, scratch_folders, sockets, starting

# The reference server costs 60 to 80 ns a request; a generator that costs more would limit it.
AIM_NS = 45.0
AIM_DEPTH = 256
ENGINES = (Native.name, Wrk.name, H2load.name)
DEPTHS = (1, 16, 256)
CONNECTIONS = 64
_TLS_CIPHER = "TLS_AES_128_GCM_SHA256"
_WARMUP_S = 0.3
_ADDRESS = "127.0.0.1"


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """What one engine costs at one depth; a figure that is missing is None, with the reason.

    ``client_ns`` is the median of the rounds, CPU (user + system) per response in ns;
    ``null_ns`` is what the null server used for the same responses.
    """

    engine: str
    depth: int
    tls: str | None  # version and cipher that are pinned; None: plain
    client_ns: float | None
    interval_95: tuple[float, float] | None
    null_ns: float | None
    requests_per_second: float | None
    rounds: int
    redone: int
    errors: dict[str, int]
    reason: str | None = None

    @property
    def meets_aim(self) -> bool | None:
        """Whether the aim for the generator is met; None where it has none, or no figure."""
        is_aimed_at = self.engine == Native.name and self.depth == AIM_DEPTH and self.tls is None
        return self.client_ns <= AIM_NS if is_aimed_at and self.client_ns is not None else None


def plans() -> list[LoadPlan]:
    """Every depth, plain and over TLS."""
    plain = [
        LoadPlan(
            name=f"depth {depth}",
            title="the generator itself",
            why="the null server is faster than any generator",
            connections=CONNECTIONS,
            depth=depth,
            duration_s=1.0,
            warmup_s=_WARMUP_S,
        )
        for depth in DEPTHS
    ]
    return plain + [
        msgspec.structs.replace(
            plan, name=f"{plan.name} TLS", tls_version="1.3", tls_ciphers=_TLS_CIPHER
        )
        for plan in plain
    ]


def measure(
    names: Sequence[str], *, rounds: int, seconds: float, seed: int, say: Callable[[str], None]
) -> Iterator[Cell]:
    """Every engine at every depth, ``rounds`` times; yields a depth's cells when all were taken.

    :param seconds: of one window.
    :raises Unusable: the null server cannot be started here.
    """
    absent: dict[str, str] = {}
    found: dict[str, launch.Engine] = {}
    for name in names:
        try:
            found[name] = by_name.engine(name)
        except Unusable as error:
            absent[name] = str(error)
    null = manifests.server("null")
    starting.prepare(null, "process", say=say)
    draw = random.Random(seed)
    with scratch_folders.folder("tls") as folder:
        os.chmod(folder, 0o755)
        pair = certificates.make(folder, address=_ADDRESS)
        contestant = _null(pair)
        try:
            for plan in plans():
                races = {
                    name: load_races.Race(
                        plan, engine, [contestant], rounds=1, duration_s=seconds, seed=seed
                    )
                    for name, engine in found.items()
                }
                for _ in range(rounds):
                    for race in draw.sample(list(races.values()), k=len(races)):
                        for _ in race.run():
                            pass
                say(f"{plan.name}: {rounds} rounds of {len(races)} engines")
                for name in names:
                    yield _cell(name, plan, races.get(name), absent.get(name), seed)
        finally:
            starting.stop_all()


def _null(pair: certificates.Pair) -> contestants.Contestant:
    @contextlib.contextmanager
    def start(plan: LoadPlan, place: placing.Placement) -> Iterator[contestants.Started]:
        running = starting.start(
            manifests.server("null"),
            "process",
            address=_ADDRESS,
            port=sockets.free_port(_ADDRESS),
            workers=plan.workers,
            cpus=None if place.server is None else ",".join(map(str, sorted(place.server))),
            run_id=secrets.token_hex(3),
            tls=Tls(sockets.free_port(_ADDRESS), *pair) if plan.tls else None,
        )
        try:
            yield running
        finally:
            running.stop()

    return contestants.Contestant("null", start, is_null=True)


def _cell(
    name: str, plan: LoadPlan, race: load_races.Race | None, absent: str | None, seed: int
) -> Cell:
    result = race.results().get("null") if race else None
    samples = result.samples if result else ()
    costs = [
        cost
        for sample in samples
        if sample.is_sound and (cost := sample.cpu_ns_per_request.client) is not None
    ]
    interval = statistics.interval_of_cost(costs, seed=seed)
    least = statistics.SAMPLES_FOR_INTERVAL_MIN
    few = f"{len(costs)} samples without errors; an interval needs {least}"
    few = few if costs else "no sample without errors"
    return Cell(
        engine=name,
        depth=plan.depth,
        tls=f"TLSv{plan.tls_version} {plan.tls_ciphers}" if plan.tls else None,
        client_ns=statistics.median(costs) if costs else None,
        interval_95=interval,
        null_ns=result.cpu_ns_per_request.server if result else None,
        requests_per_second=result.requests_per_second if result else None,
        rounds=len(samples),
        redone=result.redone if result else 0,
        errors=result.errors if result else {},
        reason=absent or (result.reason if result else None) or (None if interval else few),
    )
