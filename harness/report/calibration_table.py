"""What the load generators cost, as a table of text."""

from __future__ import annotations

from collections.abc import Sequence

from httpmark.harness.load.calibration import AIM_DEPTH, AIM_NS, CONNECTIONS, Cell
from httpmark.harness.report import text_layout


def lines(cells: Sequence[Cell], *, width: int = 80) -> list[str]:
    """The table as lines of at most ``width`` characters, and whether the aim is met."""
    out = []
    for tls in dict.fromkeys(cell.tls for cell in cells):
        out += [
            "",
            *text_layout.wrapped(
                f"THE GENERATOR ITSELF, {tls or 'plain'}: CPU ns per response, {CONNECTIONS} "
                "connections to null (95 %)",
                width, indent="",
            ),
            f"{'depth':>5}  {'engine':<8}{'ns':>9}  {'interval':<19}{'null ns':>9}{'req/s':>12}"
            f"{'rounds':>7}{'redone':>7}",
        ]  # fmt: skip
        for cell in (one for one in cells if one.tls == tls):
            low_high = "{:,.1f} - {:,.1f}".format(*cell.interval_95) if cell.interval_95 else "-"
            out.append(
                f"{cell.depth:>5}  {cell.engine:<8}{_figure(cell.client_ns, 9, 1)}  {low_high:<19}"
                f"{_figure(cell.null_ns, 9, 1)}{_figure(cell.requests_per_second, 12, 0)}"
                f"{cell.rounds:>7}{cell.redone:>7}"
            )
            if cell.reason and cell.client_ns is None:
                out += text_layout.wrapped(f"{cell.engine}: {cell.reason}", width, indent=" " * 7)
            if cell.errors:
                told = ", ".join(f"{count} {name}" for name, count in cell.errors.items())
                out += text_layout.wrapped(f"{cell.engine}: errors: {told}", width, indent=" " * 7)
    few = dict.fromkeys(c.reason for c in cells if c.client_ns is not None and c.reason)
    out += [line for reason in few for line in text_layout.wrapped(f"no interval: {reason}", width)]
    for cell in cells:
        if cell.meets_aim is not None:
            word = "met" if cell.meets_aim else "MISSED"
            out += ["", f"aim: at most {AIM_NS:.0f} ns at depth {AIM_DEPTH}, plain: {word}"]
    return out


def _figure(value: float | None, width: int, digits: int) -> str:
    return f"{'-' if value is None else format(value, f',.{digits}f'):>{width}}"
