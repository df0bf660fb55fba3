"""Findings to what GitHub shows: a step summary and annotations, each within its budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from httpmark.harness.catalogue import loading
from httpmark.harness.gate.broken_requirements import Group, Summary, summaries
from httpmark.harness.gate.conclusion import counts, headline, worst_first
from httpmark.harness.gate.findings import Finding, Status, rfc_link
from httpmark.harness.gate.verdict_sentences import sentences
from httpmark.harness.http.printable import markdown, markdown_block, markdown_code
from httpmark.harness.judging.score_text import score_text
from httpmark.harness.model.cases import Level
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import SuiteResult

SUMMARY_BYTES_MAX = 1024 * 1024  # GitHub aborts a larger step summary
ANNOTATIONS_MAX = 10  # of each kind, per step
FENCED_CHARACTERS_MAX = 4096
# A summary is read by people: the rest is in the report.
ROWS_MAX = 200
REPRODUCED_MAX = 25


def summary(run: Run, found: Sequence[Finding], *, code: int | None = None) -> str:
    """A GitHub step summary in Markdown, within GitHub's budget.

    A row for each requirement that is broken or undecided and each recommendation that is not
    followed, worst first; the report has every case.
    """
    said = run.conclusion.sentences if run.conclusion is not None else ()
    first, *rest = said or sentences(run, found, code or 0)
    lines = [
        f"## httpmark: {headline(found, interrupted=run.interrupted)}",
        "",
        f"**{markdown(first)}**{''.join(f' {markdown(one)}' for one in rest)}",
        "",
        f"{counts(found)}{f' · exit code {code}' if code is not None else ''} · "
        f"catalogue `{markdown_code(run.catalogue_version)}`{' · quick' if run.quick else ''}",
        "",
    ]
    scores = [
        (server, name, suite)
        for server in run.servers
        for name, suite in server.compliance.suites.items()
    ]
    if scores:
        lines += ["| server | suite | score | |", "|---|---|--:|---|"]
        for server, name, suite in scores:
            percent = suite.score_percent
            score = "none" if percent is None else f"{score_text(percent)} %"
            lines.append(
                f"| {markdown(server.title)} | {markdown(name)} | {score} | {_counted(suite)} |"
            )
        lines.append("")
    known = summaries(run, found, loading.load())
    rows = [row for one in known for row in _rows(one, named=len(known) > 1)]
    if rows:
        lines += ["| | requirement | what was seen |", "|---|---|---|"]
    text = _within("\n".join(lines) + "\n", rows, SUMMARY_BYTES_MAX // 2)
    return _with_reproducers(text, known, SUMMARY_BYTES_MAX)


def _rows(one: Summary, *, named: bool) -> Iterator[str]:
    """What there is to read of one server, worst first: a row for each requirement.

    :param named: each row says of which server it is.
    """
    of = f"{markdown(one.title)}: " if named else ""
    for finding in one.found:
        if finding.status is Status.UNUSABLE:
            yield _row_of(finding, of)
    for status, groups in (
        (Status.FAILED, one.failing),
        (Status.EXPECTED, [group for group in one.broken if group.expected]),
    ):
        for group in groups:
            yield f"| {status.value} | {of}{_of_group(group)} | {_seen(group)} |"
    # What rests on no clause, as speed, is shown whatever its status; what of it fails was above.
    told = (Status.UNUSABLE, Status.FAILED, Status.EXPECTED, Status.NOT_APPLICABLE)
    for finding in worst_first(one.found):
        if not finding.clause and finding.status not in told:
            yield _row_of(finding, of)
    for row in one.undecided:
        what = _requirement(row.requirement.title, row.requirement.level, row.requirement.clause)
        yield f"| {Status.UNDECIDED.value} | {of}{what} | {markdown(row.why)} |"
    for group in one.missed:
        yield f"| {Status.WARNED.value} | {of}{_of_group(group)} | {_seen(group)} |"


def _row_of(finding: Finding, of: str) -> str:
    what = _requirement(finding.title, finding.level, finding.clause)
    return f"| {finding.status.value} | {of}{what} | {markdown(finding.message)} |"


def _of_group(group: Group) -> str:
    return _requirement(group.title, group.level, group.clause)


def _requirement(title: str, level: Level, clause: str) -> str:
    link = rfc_link(clause)
    told = markdown(clause)
    where = f", [{told}]({link})" if link else f", {told}" if clause else ""
    return f"{markdown(title)} ({level.value}{where})"


def _seen(group: Group) -> str:
    """How many show it, and what the example got."""
    example = group.example
    if example is None:
        return ""
    number = len(group.found)
    many = f"{number:,} cases and checks fail, such as " if number > 1 else ""
    return f"{many}`{markdown_code(example.id)}`: {markdown(example.message)}"


# What becomes of requirements, in the words of every report, by those of the result.
_WORDS = {
    "met": ("passed", "warned"),
    "broken": ("failed",),
    "undecided": ("unstable", "void"),
    "not applicable": ("not_applicable",),
}


def _counted(suite: SuiteResult) -> str:
    """What a score is of: requirements, else requests."""
    if suite.must is not None:
        told = {name: sum(suite.must.get(key, 0) for key in keys) for name, keys in _WORDS.items()}
        shown = ", ".join(f"{number:,} {name}" for name, number in told.items() if number)
        return f"requirements: {shown}" if shown else ""
    words = ("rejected", "closed", "accepted", "mute") if suite.families else ()
    return ", ".join(
        f"{sum(int(getattr(family, word)) for family in suite.families.values()):,} {word}"
        for word in words
    )


def _with_reproducers(text: str, known: Sequence[Summary], octets_max: int) -> str:
    """The text, and below it how to send an example of each failure by hand, as far as the budget
    goes."""
    size = len(text.encode("utf-8"))
    shown = [(one, group) for one in known for group in (*one.failing, *one.missed)]
    told = [
        (one.title, group.title, group.example)
        for one, group in shown
        if group.example is not None and group.example.reproducers
    ]
    for server, what, example in told[:REPRODUCED_MAX]:
        title = f"{markdown(server)}: {markdown(what)}"
        lines = "\n".join((*example.reproducers, *((example.wire,) if example.wire else ())))
        code = markdown_block(lines, characters_max=FENCED_CHARACTERS_MAX)
        block = f"\n<details><summary>{title}</summary>\n\n{code}\n\n</details>\n"
        size += len(block.encode("utf-8"))
        if size > octets_max:
            break
        text += block
    return text


def _within(head: str, rows: Sequence[str], octets_max: int) -> str:
    """The head, as many rows as fit, and a count of the rows that are left out."""
    text, size = [head], len(head.encode("utf-8"))
    for at, row in enumerate(rows):
        size += len(row.encode("utf-8")) + 1
        if at == ROWS_MAX or size > octets_max - 100:
            text.append(f"\nand {len(rows) - at} more\n")
            break
        text.append(row + "\n")
    return "".join(text)


def workflow_commands(found: Sequence[Finding], *, verdict: Sequence[str] = ()) -> tuple[str, ...]:
    """GitHub workflow commands: the verdict in sentences, then at most ten errors and ten warnings,
    worst first, then how many more.
    """
    kinds = {
        Status.UNUSABLE: "error",
        Status.FAILED: "error",
        Status.UNDECIDED: "warning",
        Status.WARNED: "warning",
    }
    lines = [f"::notice title=httpmark::{_data(' '.join(verdict))}"] if verdict else []
    for kind in ("error", "warning"):
        chosen = [finding for finding in worst_first(found) if kinds.get(finding.status) == kind]
        shown = chosen if len(chosen) <= ANNOTATIONS_MAX else chosen[: ANNOTATIONS_MAX - 1]
        for finding in shown:
            title = f"{finding.level.value} {finding.clause}".strip()
            message = f"{finding.server}: {finding.title}: {finding.message}"
            lines.append(f"::{kind} title={_property(title)}::{_data(message)}")
        if len(chosen) > len(shown):
            lines.append(f"::{kind} title=httpmark::and {len(chosen) - len(shown)} more")
    return tuple(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
