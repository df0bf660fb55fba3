"""What changed between two runs as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from httpmark.harness.gate.run_changes import Change, Changes, Kind, examples
from httpmark.harness.http.printable import terminal_line
from httpmark.harness.report.text_layout import Table, wrapped

_IN_FULL_MAX = 12  # newly broken ones; of the others the line alone
_LISTED_MAX = 12  # of any other kind
_STATUS_WIDTH = 14


def lines(found: Changes, *, base: str, head: str, width: int = 80) -> list[str]:
    """The changes as lines; commands to copy are not cut."""
    out = [*wrapped(f"{found.headline}. {found.counted}.", width, indent="")]
    out += wrapped(f"two checks: {base} -> {head}", width, indent="", whole=True)
    for difference in found.differs:
        out += wrapped(f"differs: {difference}", width, whole=True)
    table = Table(width, ("level", -6), ("base", -_STATUS_WIDTH), ("head", -_STATUS_WIDTH))
    if found.changes:
        out += ["", table.head("")]
    for kind in Kind:
        out += _of_kind(kind, found, table, width)
    out += [""] if found.notes else []
    for note in found.notes:
        out += wrapped(note, width, whole=True)
    return out


def _of_kind(kind: Kind, found: Changes, table: Table, width: int) -> Iterator[str]:
    ones = found.of(kind)
    if not ones:
        return
    yield f"{kind.value} ({len(ones):,})"
    is_news = kind in (Kind.NEWLY_MENDED, Kind.NEWLY_WARNED)
    listed = [one for one in ones if one.is_failure or is_news]
    shown = listed if kind is Kind.NEWLY_BROKEN else listed[:_LISTED_MAX]
    several = len({one.server for one in found.changes}) > 1
    in_full = examples(shown, _IN_FULL_MAX)
    for change in shown:
        name = f"{change.server}: {change.id}" if several else change.id
        yield table.line(f"  {name}", (change.level.value, change.base, change.head))
        if kind in (Kind.NEWLY_BROKEN, Kind.FIRST_ASKED) and change in in_full:
            yield from _in_full(change, width)
    if len(shown) < len(listed):
        yield f"  and {len(listed) - len(shown):,} more: see --json"
    if left := len(ones) - len(listed):
        yield f"  {left:,} {'more that ' if listed else ''}did not fail in either run"


def _in_full(change: Change, width: int) -> Iterator[str]:
    clause = f" ({change.clause})" if change.clause else ""
    yield from wrapped(f"{change.title}{clause}", width, indent="    ")
    yield from wrapped(change.message, width, indent="    ")
    if change.reproducers:
        # Not wrapped: it is there to be copied.
        yield f"    {terminal_line(change.reproducers[0])}"
