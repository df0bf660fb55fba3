"""What changed between two runs as Markdown for a pull request: short, what is broken first."""

from __future__ import annotations

from collections.abc import Sequence

from httpmark.harness.gate.findings import rfc_link
from httpmark.harness.gate.run_changes import Change, Changes, Kind, examples
from httpmark.harness.http.printable import markdown, markdown_block, markdown_code, one_line

_SHOWN_MAX = 10  # newly broken ones, each with a line to copy
_LISTED_MAX = 100  # of any kind, by name
_TOLD_MAX = 20  # of those that need a word each
_LINE_CHARACTERS_MAX = 1000
_MESSAGE_CHARACTERS_MAX = 300


def text(found: Changes, *, base: str, head: str) -> str:
    """The changes for people who review; what is the same in both runs is left out."""
    lines = [f"## httpmark: {markdown(found.headline)}", "", f"{markdown(found.counted)}.", ""]
    for one in found.differs:
        lines += [f"> **These runs differ:** {markdown(one)}", ""]
    broken = found.of(Kind.NEWLY_BROKEN)
    shown = examples(broken, _SHOWN_MAX)
    for change in shown:
        lines += _in_full(change, found)
    lines += _names("More that is newly broken", [one for one in broken if one not in shown])
    for kind in (Kind.FIRST_ASKED, Kind.UNDECIDED):
        lines += _told(kind, found)
    for kind in (Kind.NEWLY_MENDED, Kind.NEWLY_WARNED, Kind.STILL_FAILING):
        lines += _names(kind.value.capitalize(), found.of(kind))
    lines += _no_longer_asked(found.of(Kind.NO_LONGER_ASKED))
    lines += [f"- {markdown(note)}" for note in found.notes]
    lines += [""] if found.notes else []
    lines.append(f"base `{markdown_code(base)}` · head `{markdown_code(head)}`")
    return "\n".join(lines) + "\n"


def _in_full(change: Change, found: Changes) -> list[str]:
    """One thing that is newly broken: what was wanted, what came, how to send it again."""
    lines = [f"**{change.kind.value.capitalize()}:** {_named(change, found)}", ""]
    lines += [markdown(change.message[:_MESSAGE_CHARACTERS_MAX]), ""]
    if change.reproducers:
        lines += [_block(change.reproducers[0]), ""]
    return lines


def _block(line: str) -> str:
    """A line of shell in a block that can be copied."""
    return markdown_block(one_line(line), characters_max=_LINE_CHARACTERS_MAX)


def _named(change: Change, found: Changes) -> str:
    clause, link = markdown(change.clause), rfc_link(change.clause)
    where = f"[{clause}]({link})" if link else clause
    level = f"{change.level.value} {where}".strip()
    several = len({one.server for one in found.changes}) > 1
    server = f"{markdown(change.server)}: " if several else ""
    title = markdown(change.title)
    return f"{server}{title} ({level}), `{markdown_code(change.id)}`"


def _names(title: str, ones: Sequence[Change]) -> list[str]:
    """Some changes by their names, folded away where they are many."""
    if not ones:
        return []
    listed = ", ".join(f"`{markdown_code(one.id)}`" for one in ones[:_LISTED_MAX])
    left = len(ones) - _LISTED_MAX
    listed += f" and {left:,} more" if left > 0 else ""
    if len(ones) <= _SHOWN_MAX:
        return [f"**{title}:** {listed}", ""]
    return [f"<details><summary>{title} ({len(ones):,})</summary>\n\n{listed}\n\n</details>", ""]


def _told(kind: Kind, found: Changes) -> list[str]:
    """What fails in one of the runs and cannot be compared: why, in a line each."""
    failing = [one for one in found.of(kind) if one.is_failure]
    left = len(found.of(kind)) - len(failing[:_TOLD_MAX])
    if not found.of(kind):
        return []
    lines = [f"**{kind.value.capitalize()}:**", ""]
    for change in failing[:_TOLD_MAX]:
        told = markdown(change.message[:_MESSAGE_CHARACTERS_MAX])
        states = f"{change.base} in base, {change.head} in head"
        lines.append(f"- {_named(change, found)}: {states}; {told}")
    lines += [f"- {left:,} {'more' if failing else 'that failed in neither run'}"] if left else []
    return [*lines, ""]


def _no_longer_asked(ones: Sequence[Change]) -> list[str]:
    failed = [one for one in ones if one.is_failure]
    passed = len(ones) - len(failed)
    lines = _names("No longer asked, failed in base", failed)
    if passed:
        lines += [f"**No longer asked, did not fail in base:** {passed:,}", ""]
    return lines
