"""How numbers are written everywhere: counts, scores, costs, rates, times and sizes.

Where a figure must not stand alone, the text says so: a lower bound begins with ≥.
"""

from __future__ import annotations

import math

import msgspec

from httpmark.harness.judging.score_text import score_text
from httpmark.harness.model.load import Bottleneck, LoadMode, LoadResult, LoadSample


def count(number: int | None) -> str:
    """An exact count with thousands marked."""
    return "—" if number is None else f"{number:,}"


def percent(number: float | None) -> str:
    """A score (:func:`score_text`), or a dash where there is none."""
    return "—" if number is None else score_text(number)


def nanoseconds(number: float | None) -> str:
    """A cost with three digits where it is small and thousands marked where it is large."""
    if number is None:
        return "—"
    return f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def _digits(number: float, *, down: bool) -> str:
    """Three digits and a unit; ``down`` never rounds up, as a lower bound must not."""
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")):
        if number >= limit * (1 if down else 0.9995):
            scaled = number / limit
            decimals = 2 if scaled < 10 else 1 if scaled < 100 else 0
            if down:
                scaled = math.floor(scaled * 10**decimals) / 10**decimals
            return f"{scaled:.{decimals}f}{unit}"
    return f"{number:.2f}"


def rate(number: float | None) -> str:
    """So many a second, with three digits and a unit."""
    return "—" if number is None else _digits(number, down=False)


def times(number: float | None) -> str:
    """A ratio."""
    if number is None:
        return "—"
    return f"{number:.2f}" if number < 10 else f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def memory(kilobytes: int | None) -> str:
    """kB of /proc (1,024 bytes each) in binary units."""
    if kilobytes is None:
        return "—"
    if kilobytes >= 1024 * 1024:
        return f"{kilobytes / 1024 / 1024:.2f} GiB"
    if kilobytes >= 1024:
        mib = kilobytes / 1024
        return f"{mib:.1f} MiB" if mib < 100 else f"{mib:,.0f} MiB"
    return f"{kilobytes} KiB"


class Throughput(msgspec.Struct, frozen=True):
    """Requests per second as it may be printed: plain, as a lower bound, or not at all."""

    text: str
    ranked: bool
    figure: bool
    why: str


_LIMITED_BY = {
    Bottleneck.SERVER: "the server was the bottleneck",
    Bottleneck.CLIENT: "the load generator was the bottleneck",
    Bottleneck.NETWORK: "the network was the bottleneck",
    Bottleneck.NONE: "both ends were idle at times: too few requests were in flight",
    Bottleneck.STARVED: "other programs took CPU time that the sample needed",
    Bottleneck.BROKEN: "the sample had errors",
    Bottleneck.UNKNOWN: "the bottleneck is not known",
}

STAMPS = {
    Bottleneck.SERVER: "server-bound",
    Bottleneck.CLIENT: "generator-bound",
    Bottleneck.NETWORK: "network-bound",
    Bottleneck.NONE: "nothing-bound",
    Bottleneck.STARVED: "starved",
    Bottleneck.BROKEN: "broken",
    Bottleneck.UNKNOWN: "unknown",
}


def throughput(
    rate: float | None, bottleneck: Bottleneck, *, ranked: bool, why: str = ""
) -> Throughput:
    """How requests per second are printed; what is a lower bound is never a plain number."""
    reason = why or _LIMITED_BY[bottleneck]
    if rate is None:
        return Throughput("no figure", False, False, reason)
    if bottleneck is Bottleneck.BROKEN:
        return Throughput("not counted", False, False, reason)
    if ranked:
        return Throughput(_digits(rate, down=False), True, True, reason)
    return Throughput(f"≥ {_digits(rate, down=True)}", False, True, reason)


def result_throughput(load: LoadResult) -> Throughput:
    """Of a load result: its own reason first."""
    if load.requests_per_second is None:
        why = load.reason or load.ranked_reason
    elif load.mode is LoadMode.OPEN and load.bottleneck is not Bottleneck.BROKEN:
        why = load.ranked_reason  # it was offered: whoever was the limit, it is no throughput
    else:
        why = load.ranked_reason if load.ranked else load.bottleneck_why
    # Of a server that may not be ranked: its own limit all the same, so a figure and no bound.
    is_limit = load.bottleneck is Bottleneck.SERVER and load.mode is not LoadMode.OPEN
    told = throughput(load.requests_per_second, load.bottleneck, ranked=is_limit, why=why)
    if is_limit and not load.ranked and told.ranked:
        return msgspec.structs.replace(told, ranked=False, why=load.ranked_reason)
    return told


def sample_throughput(sample: LoadSample) -> Throughput:
    """Of one window: plain only when the server was its limit and nothing went wrong."""
    fit = sample.bottleneck is Bottleneck.SERVER and not sample.errors
    return throughput(sample.requests_per_second, sample.bottleneck, ranked=fit)


def littles_law(connections: int, depth: int, ratio: float | None) -> str:
    """Little's law as a self-check: requests in flight, beside rate times mean time."""
    slots = connections * depth
    line = f"N = {connections:,} × depth {depth:,} → {slots:,} in flight"
    if ratio is None:
        return f"{line}; rate × mean time not measured"
    return f"{line}; rate × mean time = {slots * ratio:,.0f} ({ratio * 100:.1f} %)"


def in_flight(slots: int, sample: LoadSample) -> str:
    """Rate times mean time of one window, and its share of the slots that were to be in flight."""
    if sample.littles_law_ratio is None:
        return "not measured"
    return f"{slots * sample.littles_law_ratio:,.0f} ({sample.littles_law_ratio * 100:.1f} %)"


def microseconds(number: float | None) -> str:
    """A time with three digits, in the unit that suits it."""
    if number is None:
        return "—"
    for limit, unit in ((1e6, "s"), (1e3, "ms"), (1.0, "µs")):
        if number >= limit * 0.9995 or unit == "µs":
            scaled = number / limit
            break
    return f"{scaled:.3g} {unit}" if scaled < 999.5 else f"{scaled:,.0f} {unit}"


def share(ratio: float | None) -> str:
    """A ratio as a whole percentage."""
    return "—" if ratio is None else f"{ratio * 100:.0f} %"
