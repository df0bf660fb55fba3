"""What `httpmark cluster doctor` prints."""

from __future__ import annotations

from httpmark.harness.cluster.inspection import Inspected, Report
from httpmark.harness.report import text_layout


def lines(report: Report, *, width: int = 80) -> list[str]:
    """A paragraph for each worker; what is missing ends with what mends it."""
    out = []
    for one in report.workers:
        state = "MEND" if one.lacks else "ok  "
        out += text_layout.wrapped(
            f"{state} {one.name} ({one.address}): {_told(one)}", width, indent="", whole=True
        )
        for lack in one.lacks:
            out += _mend(lack.what, lack.mend, width)
    for lack in report.lacks:
        out += text_layout.wrapped(f"MEND {lack.what}", width, indent="", whole=True)
        out += text_layout.wrapped(lack.mend, width, indent="     ", whole=True)
    return out


def _mend(what: str, mend: str, width: int) -> list[str]:
    return text_layout.wrapped(f"{what}: {mend}", width, indent="     ", whole=True)


def _told(one: Inspected) -> str:
    words = [", ".join(one.roles) or "no role"]
    if one.facts is not None:
        facts = one.facts
        words += [
            f"httpmark {facts.version}",
            f"{facts.cores} {'core' if facts.cores == 1 else 'cores'}",
            f"{'unlimited' if facts.descriptors is None else f'{facts.descriptors:,}'} descriptors",
            f"{'unknown' if facts.ports is None else f'{facts.ports:,}'} ports",
        ]
    if one.clock is not None:
        clock = one.clock
        words += [
            f"clock {clock.seconds * 1000:+.1f} ms, to {clock.bound_s * 1000:.1f} ms",
            f"round trip {clock.round_trip_s * 1000:.1f} ms through the scheduler",
        ]
    return "; ".join(words)
