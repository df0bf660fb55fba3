"""The result of a run, as far as it has come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from httpmark.harness.command import stored_runs
from httpmark.harness.command.run_options import Options
from httpmark.harness.command.run_servers import Entry, Servers
from httpmark.harness.load import paired_ratios, races
from httpmark.harness.model.load import LoadResult, PairedRatio
from httpmark.harness.model.memory import Memory
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.model.verdicts import Compliance


def filled(
    run: Run,
    options: Options,
    servers: Servers,
    raced: Sequence[races.Race],
    *,
    earlier: Sequence[PairedRatio] = (),
) -> Run:
    """A run with what is known about its servers, ranked and compared.

    :param earlier: ratios of profiles that an earlier sitting of the run completed.
    """
    folded = [race.results() for race in raced]
    # The null server, unless it was asked for, is in every block and in no comparison.
    hidden = {servers.null.name} - set(options.servers) if servers.null else set()
    found = msgspec.structs.replace(
        run,
        servers=tuple(_server(entry, raced, folded) for entry in servers.entries),
        paired=(
            *earlier,
            *(
                pair
                for results in folded
                for pair in paired_ratios.paired(
                    results, base=_base(options), leave_out=hidden, seed=run.seed
                )
            ),
        ),
    )
    return stored_runs.ranked(found)


def _base(options: Options) -> str:
    """The server that the others are compared with: the first named, else the reference."""
    first = (*options.servers, *(one.name for one in options.targets), "reference")
    return options.base or first[0]


def _server(
    entry: Entry, raced: Sequence[races.Race], folded: Sequence[dict[str, LoadResult]]
) -> ServerResult:
    name = entry.server.name
    memories = entry.memory + [m for race in raced for m in race.memory.get(name, [])]
    return ServerResult(
        name=name,
        title=entry.server.title,
        language=entry.server.language,
        version=entry.version or entry.server.version or None,
        runtime=entry.runtime,
        image_digest=entry.image_digest,
        command=entry.program[0] if entry.program else None,
        binary_sha256=entry.program[1] if entry.program else None,
        container_limits=entry.container_limits,
        control=entry.server.control,
        engine=entry.server.engine,
        unavailable=entry.unavailable,
        died=entry.died,
        crashes=tuple(entry.crashes),
        compliance=Compliance(dict(entry.suites)),
        forwarding=entry.forwarding,
        forwarding_reason=entry.forwarding_reason,
        load=(*entry.load, *(results[name] for results in folded if name in results)),
        memory=memory_of(memories),
        memory_reason=None if memories else entry.unavailable or "never measured",
    )


def memory_of(memories: Sequence[Memory]) -> Memory | None:
    """What a server holds: the ladder with the most connections, and beside it the peak while
    suites or load were fired.

    Without a ladder, the highest figure of each kind over all starts.
    """
    if not memories:
        return None

    def top(values: Iterable[int | None]) -> int | None:
        return max((value for value in values if value is not None), default=None)

    climbed = [memory for memory in memories if memory.ladder]
    poured = [memory.slow_readers for memory in memories if memory.slow_readers]
    busy = [memory for memory in memories if not memory.ladder and not memory.slow_readers]
    if climbed:
        chosen = max(climbed, key=lambda memory: memory.connections_held)
    else:
        chosen = msgspec.structs.replace(
            memories[-1],
            vmpeak_kb=top(memory.vmpeak_kb for memory in memories),
            vmhwm_kb=top(memory.vmhwm_kb for memory in memories),
            pss_kb=top(memory.pss_kb for memory in memories),
            cgroup_peak_kb=top(memory.cgroup_peak_kb for memory in memories),
            connections_held=max(memory.connections_held for memory in memories),
            processes=max(memory.processes for memory in memories),
        )
    return msgspec.structs.replace(
        chosen,
        # What an earlier sitting left is folded already.
        busy_vmhwm_kb=top(
            (*(memory.vmhwm_kb for memory in busy), *(memory.busy_vmhwm_kb for memory in memories))
        ),
        slow_readers=poured[-1] if poured else None,
    )
