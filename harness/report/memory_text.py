"""Memory as text of the scoreboard: of the process tree, for each connection, with slow readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from httpmark.harness.model.memory import BytesPerConnection, Memory
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.report.number_format import (
    count,
    memory,
)
from httpmark.harness.report.overview import Row
from httpmark.harness.report.text_layout import Table, fit, grouped, wrapped


def connection_lines(run: Run, width: int) -> list[str]:
    """What a connection takes: idle, asking now and then, and never reading."""
    return [*_per_connection(run.servers, width), *_of_slow_readers(run.servers, width)]


def _per_connection(servers: Sequence[ServerResult], width: int) -> Iterator[str]:
    climbed = [(s.name, s.memory) for s in servers if s.memory and s.memory.ladder]
    if not climbed:
        return
    table = Table(
        width, ("resident", 8), ("kernel", 7), ("total", 8), ("virtual", 8), ("held", 9),
        ("none held", 9), ("after", 9),
    )  # fmt: skip
    yield ""
    yield from wrapped(
        "PER CONNECTION, idle after one request, in bytes; virtual is address space; none held and "
        "after: PSS before the first connection, and after all were closed",
        width,
        indent="",
    )
    yield table.head("server")
    notes = []
    for name, held in climbed:
        per = held.bytes_per_connection or BytesPerConnection(None, None, None)
        cells = [
            *(_whole(figure) for figure in (per.resident, per.kernel, per.total, per.virtual)),
            count(held.connections_held),
            memory(held.baseline.pss_kb if held.baseline else None),
            memory(held.after_close_pss_kb),
        ]
        yield table.line(name, cells)
        if held.reason:
            notes.append((name, held.reason))
        if held.vmhwm_reason:
            notes.append((name, f"VmHWM {held.vmhwm_reason}"))
        notes += [(name, told) for told in _of_trickle(held)]
    yield from grouped(notes, width)


def _of_slow_readers(servers: Sequence[ServerResult], width: int) -> Iterator[str]:
    for server in servers:
        slow = server.memory.slow_readers if server.memory else None
        if slow and slow.pss_peak_kb is not None and slow.pss_before_kb is not None:
            yield ""
            yield from wrapped(
                f"SLOW READERS, {server.name}: read {slow.sent_kb:,} kB of requests from "
                f"{slow.connections:,} clients that never read its answers, "
                f"and grew by {slow.pss_peak_kb - slow.pss_before_kb:,} kB"
                + (
                    f"; the kernel's buffers, of both ends, grew by {slow.socket_buffers_kb:,} kB"
                    if slow.socket_buffers_kb is not None
                    else ""
                ),
                width,
                indent="",
            )


def _of_trickle(held: Memory) -> Iterator[str]:
    """What connections cost that are not idle, beside what they cost when they are."""
    if held.trickle_reason:
        yield f"memory with slow requests was not measured: {held.trickle_reason}"
    one = held.trickle
    if one is None or one.pss_peak_kb is None:
        return
    errors = ", ".join(f"{kind} {number:,}" for kind, number in one.errors.items())
    wrong = f", errors: {errors}" if errors else ""
    idle = next((r.pss_kb for r in held.ladder if r.connections == one.connections), None)
    yield (
        f"{one.connections:,} connections with a request every {one.seconds:g} s: PSS "
        f"{one.pss_peak_kb:,} kB, idle {'-' if idle is None else format(idle, ',')} kB{wrong}"
    )


def _whole(number: float | None) -> str:
    return "-" if number is None else format(number, ",.0f")


def tree_lines(measured: Sequence[Row], width: int) -> list[str]:
    known = [row for row in measured if row.server.memory or row.server.memory_reason]
    if not known:
        return []
    table = Table(
        width, ("VmPeak", 10), ("VmHWM", 10), ("PSS", 10), ("connections", 11), ("VmHWM busy", 10)
    )
    lines = [
        "",
        fit("MEMORY of the process tree; VmPeak is virtual: address space, not memory", width),
        table.head("server"),
    ]
    notes = []
    for row in known:
        held = row.server.memory
        if held is None:
            notes.append((row.server.name, row.server.memory_reason or "not measured"))
            continue
        cells = [
            *(memory(figure) for figure in (held.vmpeak_kb, held.vmhwm_kb, held.pss_kb)),
            count(held.connections_held),
            memory(held.busy_vmhwm_kb),
        ]
        lines.append(table.line(row.marked_name, cells))
    return lines + grouped(notes, width)
