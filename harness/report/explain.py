"""What a case, a requirement or another word of a report means, as text for a terminal."""

from __future__ import annotations

import contextlib
import itertools
import textwrap
from collections.abc import Iterator, Sequence

from httpmark.harness.catalogue import (
    catalogue,
    delivery_modes,
    expectation_words,
    loading,
    lookup,
    vocabulary,
)
from httpmark.harness.catalogue.catalogue import Planned
from httpmark.harness.catalogue.step_words import own_steps, played_in_words
from httpmark.harness.gate import findings
from httpmark.harness.http import shell_lines
from httpmark.harness.http.shell_lines import curl
from httpmark.harness.judging import (
    delivery_comparison,
    requirement_verdicts,
)
from httpmark.harness.judging.response_rules.rule_table import RULES, Rule
from httpmark.harness.model.cases import (
    Case,
    Family,
    Level,
    Op,
    Requirement,
)
from httpmark.harness.model.crashes import CRASH
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.report import glossary
from httpmark.harness.servers import manifests


def explain(name: str) -> str:
    """The rule of a case, its bytes and one-line reproducers; or the meaning of another word of a
    report: a requirement, a check on every answer, a family, a clause, a verdict.

    :raises HarnessError: there is no such case, and no such word.
    """
    others = list(_others(name))
    if not others:
        return _of_case(*lookup.find(name))
    with contextlib.suppress(HarnessError):
        if (found := lookup.find_exactly(name)) is not None:
            others.insert(0, _of_case(*found))
    return "\n\n".join(others)


def _others(name: str) -> Iterator[str]:
    """What a word of a report names other than a case."""
    known = loading.load()
    for row in known.requirements:
        if row.id == name:
            yield _of_requirement(known, row)
    group, _, level = name.partition("/")
    if level in _LEVELS and any(
        family.group.lower() == group for family in known.families.values()
    ):
        yield f"{name}: the cases of {group.upper()} at that level that belong to no requirement"
    if (check := RULES.get(name.upper())) is not None:
        yield _of_check(known, check)
    if name.endswith(findings.CUT):
        yield _of_deliveries(name.removesuffix(findings.CUT))
    if name.endswith(CRASH):
        yield _of_crash(name.removesuffix(CRASH))
    members = [family for family in known.families.values() if family.group == name.upper()]
    if members and name.upper() in glossary.FAMILIES:
        title = glossary.FAMILIES[name.upper()]
        yield "\n".join((f"{name.upper()}: {title}", *_listed(members)))
    if (plan := known.plans.get(name)) is not None:
        yield "\n".join(
            (
                f"{name}: {plan.title}",
                f"  a load of {plan.connections:,} connections x depth {plan.depth:,}",
                *_wrapped(plan.why),
            )
        )
    for server in manifests.servers():
        if server.name == name:
            yield f"{name}: {server.title} {server.version}, {server.homepage or 'of this project'}"
    mode = delivery_modes.mode_of(name)
    told = glossary.meaning(mode if "@" in name and mode in delivery_modes.MODES else name)
    if told is not None:
        yield "\n".join(textwrap.wrap(told, 80, subsequent_indent="  "))
    asked = expectation_words.wanted(name)
    if asked != name and not name.isdigit():
        yield "\n".join(textwrap.wrap(f"{name}: {asked}", 80, subsequent_indent="  "))
    if "/" in name or " " in name or name.startswith("CVE-"):
        with contextlib.suppress(HarnessError):
            chosen = known.select((name,))
            named = [known.families[id] for id in known.families if id in chosen]
            yield "\n".join((f"{name}: {_cases(named)}", *_listed(named)))


_LEVELS = frozenset(level.lower() for level in Level)
_LISTED_MAX = 12


def _cases(families: Sequence[Family]) -> str:
    return "1 case" if len(families) == 1 else f"{len(families)} cases"


def _listed(families: Sequence[Family]) -> list[str]:
    """Cases, a line each, up to a number that is still read."""
    rows = [
        f"  {one.id:34.34} {one.ref:9.9} {one.level:6} "
        f"{textwrap.shorten(one.title, 26, placeholder='...')}".rstrip()
        for one in families
    ]
    more = len(rows) - _LISTED_MAX
    return [*rows[:_LISTED_MAX], *([f"  and {more} more: httpmark list cases"] if more > 0 else [])]


def _of_requirement(known: catalogue.Catalogue, row: Requirement) -> str:
    """A requirement, and the cases that show it."""
    shows = requirement_verdicts.showing(row)
    shown = [
        family
        for family in known.families.values()
        if shows(family.refs or (family.ref,), family.group)
    ]
    checks = [check for check in RULES if shows((check,), check)]
    by_cuts = [one for one in row.cases if one == delivery_comparison.NOT_EARLY]
    return "\n".join(
        (
            f"{row.id} (a requirement: met when all its cases pass)",
            f"  {row.level}: {row.clause}",
            *_wrapped(row.title),
            *([f"  shown by {_cases(shown)}:", *_listed(shown)] if shown else []),
            *(f"  shown by {one}: {RULES[one].title}" for one in checks),
            *(f"  shown by {one}: httpmark check TARGET --full" for one in by_cuts),
        )
    )


def _of_check(known: catalogue.Catalogue, check: Rule) -> str:
    """A check on every answer: it sends nothing of its own."""
    rows = [
        row.id
        for row in known.requirements
        if requirement_verdicts.showing(row)((check.id,), check.id)
    ]
    return "\n".join(
        (
            f"{check.id} (a check on every answer of every case)",
            f"  {check.level}: {check.clause}",
            *_wrapped(check.title),
            *([f"  decides the requirement {', '.join(rows)}"] if rows else []),
            "  it sends nothing of its own; a report names the case whose answer failed, and",
            "  httpmark replay CASE TARGET shows what is wrong with that answer",
        )
    )


def _of_crash(case: str) -> str:
    """The finding that the server dies or hangs of a case."""
    family, _ = lookup.find(case)
    return "\n".join(
        (
            f"{case}{CRASH}: the server died or hung of {case}",
            "  alone and after a fresh start; it fails the gate, whatever the level of the case",
            "to do it again:",
            f'httpmark check --serve "COMMAND {{port}}" --suite {family.suite} --case {family.id}',
        )
    )


def _of_deliveries(case: str) -> str:
    """The finding that the answer to a message depends on how TCP splits it."""
    family, planned = lookup.find(case)
    if not delivery_modes.is_delivered(family, planned.case.id):
        raise HarnessError(f"{case}: this message is not sent in pieces")
    return "\n".join(
        (
            f"{case}{findings.CUT}: the answer to {case} depends on how TCP splits it",
            "  it got the same answer twice in one write, then another one in pieces, 3 times",
            f"  deliveries: {', '.join(delivery_modes.MODES)}; see httpmark explain NAME",
            "to send it in two pieces:",
            f"httpmark replay {case} http://127.0.0.1:PORT/ --delivery two@17",
        )
    )


def _of_case(family: Family, planned: Planned) -> str:
    case = planned.case
    lines_ = [
        f"{case.id} ({', '.join(family.refs)}, suite {family.suite})",
        *_wrapped(family.title + (f"; one of {family.count}" if family.generated else "")),
        *_wrapped(f"{planned.level}: {family.clause}"),
        *_wrapped(family.why),
    ]
    if planned.expectation is None:
        lines_ += _wrapped(f"judged by: {family.judged_by}")
    elif (looked_for := vocabulary.PROGRAMS.get(family.runner or "")) is not None:
        lines_ += _wrapped(f"played by a program: {looked_for}")
    else:
        for word, asked in (
            ("passes: ", planned.expectation.text),
            ("allowed:", planned.expectation.allowed_text.replace(" (noted)", "")),
        ):
            lines_ += (
                _wrapped(f"{word} {expectation_words.wanted(asked)} [{asked}]") if asked else []
            )
    if family.contested:
        lines_ += _wrapped(f"contested: {family.contested}")
    if family.advisories:
        lines_ += _wrapped(f"seen in: {', '.join(family.advisories)}")
    own = own_steps(case)
    lines_ += played_in_words(own)
    if family.runner is not None:
        lines_.append(f"to play it: httpmark check http://127.0.0.1:PORT/ --case {case.id}")
        return "\n".join(lines_)
    lines_.append("to send it by hand:")
    where = shell_lines.Place("127.0.0.1", tls=family.transport == "tls")
    scheme = "https" if where.tls else "http"
    lines_ += _by_hand(case, where) or [f"httpmark replay {case.id} {scheme}://127.0.0.1:PORT/"]
    return "\n".join(lines_)


def _wrapped(text: str) -> list[str]:
    """Text that belongs to the line above, for a terminal."""
    return textwrap.wrap(text, 80, initial_indent="  ", subsequent_indent="    ")


def _by_hand(case: Case, where: shell_lines.Place) -> list[str]:
    """The lines of shell that send a case, as far as one would copy them; none where no line can
    say it."""
    own = own_steps(case)
    left = itertools.takewhile(lambda step: step.op is not Op.SEND, case.steps[len(own) :])
    own_waits = own if all(step.op in (Op.AWAIT, Op.WATCH) for step in own) else ()
    wait_s = shell_lines.waited_s((*own_waits, *left))
    line = shell_lines.again(own, where, wait_s=wait_s)
    lines_ = [line] if line is not None else []
    writes = [step.data for step in own if step.op is Op.SEND]
    if len(writes) == len(own) == 1:
        curl_line = curl(writes[0], address=where.address, port=where.port)
        lines_ += [curl_line] if curl_line is not None and not where.tls else []
        lines_.append(shell_lines.scripted(own, where, wait_s=wait_s))
    return [line for line in lines_ if len(line) <= shell_lines.LINE_CHARACTERS_MAX]
