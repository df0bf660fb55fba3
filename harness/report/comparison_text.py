"""A comparison as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from httpmark.harness.load import statistics
from httpmark.harness.load.comparison import PAIRS_MIN, AgainstItself, Comparison, samples_redone
from httpmark.harness.load.paired_verdicts import Judged
from httpmark.harness.load.self_comparison import DRAWN_GATES
from httpmark.harness.report import text_layout


def lines(found: Comparison | Sequence[AgainstItself], *, width: int = 80) -> list[str]:
    """A comparison, or A/A runs, as lines of at most ``width`` characters; words are not cut."""
    said = (
        _lines(found)
        if isinstance(found, Comparison)
        else [line for one in found for line in _itself_lines(one)]
    )
    return [
        part
        for line in said
        for part in text_layout.wrapped(
            line.strip(), width, indent=line[: len(line) - len(line.lstrip())], whole=True
        )
    ]


def _lines(found: Comparison) -> list[str]:
    out = [f"{found.how}: {found.base} -> {found.head}"]
    # Above the figures, so that a forced comparison begins with its weakness.
    out += [f"  differs: {difference}" for difference in found.differences]
    out += [f"  {asked}" for asked in _asked(found.paths)]
    out.append("")
    for line in found.lines:
        name = " ".join(word for word in (line.server, line.profile, line.metric) if word)
        word = line.verdict.value if line.verdict else "-"
        out.append(f"{word:<13} {name}: {figures(line.judged)}{line.why}{_shown(line.judged)}")
    out += [f"  {note}" for note in found.notes]
    return [*out, "", f"verdict: {found.verdict}"]


def _asked(paths: dict[str, tuple[str, ...]]) -> list[str]:
    """What was requested: of both sides, or of each."""
    told: dict[str, list[str]] = {}
    for profile, asked in paths.items():
        told.setdefault(" and ".join(dict.fromkeys(f"GET {path}" for path in asked)), []).append(
            profile
        )
    if len(told) == 1:
        return [f"requested: {next(iter(told))}"]
    return [f"requested by {', '.join(profiles)}: {asked}" for asked, profiles in told.items()]


def _shown(judged: Judged | None) -> str:
    """The smallest change that so many pairs with this noise can show."""
    if judged is None or judged.detectable is None:
        return ""
    return f"; these pairs show a change of {judged.detectable - 1:.1%} or more 8 times in 10"


def figures(judged: Judged | None) -> str:
    """How much worse, with its interval; nothing where there are no figures."""
    if judged is None or judged.ratio is None or judged.interval is None:
        return ""
    low, high = judged.interval
    return (
        f"{judged.ratio:.3f} times as bad ({low:.3f} - {high:.3f} at {judged.level:.0%}, "
        f"{judged.pairs} pairs): "
    )


def _itself_lines(found: AgainstItself) -> list[str]:
    """An A/A run as text."""

    def percent(ratio: float | None) -> str:
        return "?" if ratio is None else f"{ratio - 1:.1%}"

    out = [
        f"{found.server} against itself, {found.profile}: {found.comparisons} comparisons of "
        f"{found.pairs_each} pairs",
        f"  gates that failed: {found.false_alarms}; intervals that exclude 1: {found.apart}",
    ]
    if found.signal is not None:
        out.append(f"  interrupted: {found.wanted} comparisons were wanted")
    if found.unjudged:
        out.append(f"  {found.unjudged} more had too few samples without errors to be judged")
    if found.redone:
        out.append(f"  {samples_redone(found.redone)}")
    if found.deviation is not None:
        out.append(f"  a pair's ratio of cost varies by {found.deviation:.1%} (standard deviation)")
    told = ", ".join(f"{percent(ratio)} with {n} pairs" for n, ratio in found.detectable.items())
    out.append(f"  this machine shows a change of cost of {told} 8 times in 10")
    if found.drawn_alarms is not None:
        most = statistics.share_at_most(found.drawn_alarms, DRAWN_GATES)
        out.append(
            f"  of {DRAWN_GATES} gates of {PAIRS_MIN} or more pairs, drawn from these pairs, "
            f"{found.drawn_alarms} failed: at most {most:.1%} false alarms"
        )
    if found.drift is not None and found.drift.is_clear:
        out.append(
            f"  the machine drifted by {percent(found.drift.ratio)} over the run; pairs cancel it, "
            "two separate runs do not"
        )
    if found.slot is not None and not found.slot[0] <= 0 <= found.slot[1]:
        low, high = found.slot
        out.append(
            f"  the second of a pair costs {low:+.1%} to {high:+.1%} more: the order matters"
        )
    return [*out, f"  {'fit' if found.fit else 'UNFIT'}: {found.why}"]
