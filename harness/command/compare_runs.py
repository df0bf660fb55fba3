"""Two stored runs compared: what is newly broken, and what costs more."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from httpmark.harness.catalogue import loading
from httpmark.harness.load import memory_ladder, statistics
from httpmark.harness.load.comparison import (
    ALIVE,
    COST,
    MEMORY,
    Comparison,
    Line,
    Options,
    Ratios,
    all_judged,
    broken_answers,
    line_of,
    verdict_of,
    warn_of_many,
)
from httpmark.harness.load.paired_verdicts import Gate
from httpmark.harness.load.side_by_side import SideBySide
from httpmark.harness.model import progress, run_folder
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.load import LoadResult
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.servers import machine


def measure(options: Options, events: progress.Events) -> Comparison:
    """Compare two run folders, or measure two servers side by side.

    :raises HarnessError: one is a folder and the other is not; folders of different environments.
    :raises Unusable: a server cannot be used, or died.
    """
    are_folders = [is_folder(options.base), is_folder(options.head)]
    if all(are_folders):
        return folders(options)
    if any(are_folders):
        other = options.head if are_folders[0] else options.base
        raise HarnessError(
            f"{other} is not a run folder: a run folder can only be compared with another one"
        )
    return SideBySide(options, events).compare()


def is_folder(text: str) -> bool:
    """Whether a word names a run folder."""
    return os.path.isfile(os.path.join(text, run_folder.RESULT))


def folders(options: Options) -> Comparison:
    """Compare two stored runs.

    :raises HarnessError: their environments differ, and it is not forced.
    """
    base, head = run_folder.read(Path(options.base)), run_folder.read(Path(options.head))
    differences = _differences(base, head)
    if differences and not options.force:
        raise HarnessError(
            f"the environments differ ({'; '.join(differences[:3])}"
            f"{'; ...' if len(differences) > 3 else ''}): "
            "measure both on one machine or add --force"
        )
    seed = options.seed if options.seed is not None else head.seed
    heads = {server.name: server for server in head.servers}
    known = loading.load().plans
    of_memory = not options.profiles or any(
        name in known and known[name].mode in memory_ladder.MODES for name in options.profiles
    )
    found: list[Line | Ratios] = []
    for server in base.servers:
        if server.control:
            continue
        other = heads.get(server.name)
        for result in server.load:
            if not options.profiles or result.profile in options.profiles:
                found.append(_of_results(server, other, result, seed))
        if of_memory:
            found += _of_memory(server, other, options.margins[MEMORY])
        died = other.died if other else None
        if died and not server.died and not any(one.server == server.name for one in found):
            found.append(line_of("run", ALIVE, server.name, None, Gate.FAIL, f"head died: {died}"))
    lines = all_judged(found, options.margins[COST], seed)
    notes = [
        "two runs at different times: figures are relative to the null server in the same block"
    ]
    for name, one in (("base", base), ("head", head)):
        if one.interrupted:
            notes.append(f"{name} was interrupted: only what it measured is compared")
        if one.quick and base.quick != head.quick:
            notes.append(f"{name} was a quick run and the other was not: its windows are shorter")
    notes += warn_of_many(lines)
    if differences:
        notes.insert(
            0, "the environments differ and --force was given: the figures may mean nothing"
        )
    return Comparison(
        base=options.base,
        head=options.head,
        how="two runs",
        verdict=verdict_of(lines),
        lines=tuple(lines),
        notes=tuple(notes),
        differences=tuple(differences),
        seed=seed,
    )


def _differences(base: Run, head: Run) -> list[str]:
    """What makes figures of two runs incomparable: the machines, and how servers ran on them."""
    heads = {server.name: server.runtime for server in head.servers if server.runtime}
    both = [s for s in base.servers if s.runtime and s.name in heads]
    found = machine.differences(base.environment, head.environment)
    found += [
        f"{server.name} ran as: {server.runtime}, {heads[server.name]}"
        for server in both
        if server.runtime != heads[server.name]
    ]
    if any(server.runtime == heads[server.name] == "docker" for server in both):
        found += machine.docker_differences(base.environment, head.environment)
    return found


def _key(result: LoadResult) -> tuple[object, ...]:
    return result.profile, result.engine, result.connections, result.depth


def _lacking(
    server: ServerResult, other: ServerResult | None, profile: str, metric: str, why: str
) -> Line:
    """The line of a figure that head lacks: a server that died fails, the rest is inconclusive."""
    verdict = Gate.INCONCLUSIVE
    if other is None:
        why = "head does not have this server"
    elif other.unavailable:
        why = f"head did not measure it: {other.unavailable}"
    elif other.died and server.died:
        why = f"it died in both; head: {other.died}"
    elif other.died:
        verdict, why = Gate.FAIL, f"head died: {other.died}"
    return line_of(profile, metric, server.name, None, verdict, why)


def _of_results(
    server: ServerResult, other: ServerResult | None, base: LoadResult, seed: int
) -> Line | Ratios:
    head = next((r for r in other.load if _key(r) == _key(base)), None) if other else None
    if head is None:
        shape = f"{base.connections:,} connections x depth {base.depth:,} by {base.engine}"
        why = f"head did not measure it with {shape}"
        return _lacking(server, other, base.profile, COST, why)
    for name, one in (("head", head), ("base", base)):
        if one.refused:
            why = f"{name} measured nothing: {one.reason}"
            line = line_of(base.profile, COST, server.name, None, Gate.INCONCLUSIVE, why)
            return msgspec.structs.replace(line, unmeasured=True)
    if base.path != head.path and base.path and head.path:
        why = f"base was asked for {base.path} and head for {head.path}"
        return line_of(base.profile, COST, server.name, None, Gate.INCONCLUSIVE, why)
    if head.reason and not base.reason:
        return _lacking(server, other, base.profile, COST, f"head: {head.reason}")
    broken = broken_answers(server.name, base, head)
    if broken is not None:
        return broken
    logs = [_over_null(result) for result in (head, base)]
    if not all(logs):
        why = "no null server beside the samples, or no cost: two runs cannot be compared"
        return line_of(base.profile, COST, server.name, None, Gate.INCONCLUSIVE, why)
    return Ratios(server.name, base.profile, statistics.unpaired(logs[0], logs[1], seed=seed))


def _over_null(result: LoadResult) -> list[float]:
    sound = [sample for sample in result.samples if sample.is_sound]
    pairs = [
        (cost, null)
        for sample in sound
        if (cost := sample.cpu_ns_per_request.server) is not None
        and (null := sample.null_cpu_ns_per_request) is not None
    ]
    return statistics.log_ratios([a for a, _ in pairs], [b for _, b in pairs])


def _of_memory(server: ServerResult, other: ServerResult | None, margin: float) -> list[Line]:
    """The slopes of resident memory; they have almost no noise, so the margin alone decides."""
    before, after = _resident(server), _resident(other) if other else None
    if before is None:
        return []
    if after is None:
        told = other and (other.memory.reason if other.memory else other.memory_reason)
        why = f"head has no slope: {told or 'no memory profile was run'}"
        return [_lacking(server, other, "memory", MEMORY, why)]
    assert server.memory is not None
    assert other is not None
    assert other.memory is not None
    held, holds = server.memory.connections_held, other.memory.connections_held
    if holds < memory_ladder.HELD_MIN * held:
        reason = other.memory.reason or "no reason given"
        why = f"head held {holds:,} connections, base {held:,}: {reason}"
        return [line_of("memory", MEMORY, server.name, None, Gate.INCONCLUSIVE, why)]
    allowed = max(before * (1 + margin), before + 64)  # less than a cache line is no change
    verdict = Gate.FAIL if after > allowed else Gate.PASS
    why = f"{before:,.0f} and {after:,.0f} bytes"
    return [line_of("memory", MEMORY, server.name, None, verdict, why)]


def _resident(server: ServerResult) -> float | None:
    per = server.memory.bytes_per_connection if server.memory else None
    return per.resident if per else None
