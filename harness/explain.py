"""What there is, and what one case says: its rule, its octets, a reproducer, and both sides of
the wire when it is sent again."""

from __future__ import annotations

import contextlib
import difflib
import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from httpmark.harness import (
    catalogue,
    conformance,
    delivery,
    english,
    gates,
    glossary,
    judge,
    octets,
    planted,
    request_reader,
    response_checks,
    runners,
    runtime,
    score,
    scoring,
    segmentation,
    servers,
    shrinking,
)
from httpmark.harness.catalogue import Planned
from httpmark.harness.evidence import Mask
from httpmark.harness.model import (
    LIMITS,
    Case,
    Exchange,
    Facts,
    Family,
    HarnessError,
    Level,
    Op,
    Requirement,
    Step,
    Word,
)
from httpmark.harness.probe import Talker

_SHOWN_OCTETS = 2048


def listing(what: str) -> tuple[list[str], dict[str, Any]]:
    """Rows for people and the value for ``--json``: servers, suites, cases or profiles."""
    known = catalogue.load()
    if what == "servers":
        found = [runtime.listed(server) for server in servers.servers()]
        rows = []
        for server in found:
            rows.append(f"{server['name']:14} {server['version']}")
            rows += [
                f"{'':14} {name}: {'available' if state is True else state}"
                for name, state in server["available"].items()
            ]
        return rows, {"servers": found}
    if what == "suites":
        value = [
            {
                "name": suite,
                "families": len(known.of_suite(suite)),
                "cases": sum(family.count for family in known.of_suite(suite)),
            }
            for suite in known.suites
        ]
        return (
            [f"{v['name']:14} {v['cases']} cases in {v['families']} families" for v in value],
            {"suites": value},
        )
    if what == "profiles":
        plans = list(known.plans.values())
        return (
            [
                f"{p.name:14} {p.connections} connections x depth {p.depth}: {p.title}"
                for p in plans
            ],
            {"profiles": plans},
        )
    families = list(known.families.values())
    return (
        [f"{f.id:42} {f.ref:9} {f.level:6} {f.count:6} {f.title}" for f in families],
        {
            "cases": [
                {
                    "id": family.id,
                    "ref": family.ref,
                    "refs": family.refs,
                    "family": family.group,
                    "level": family.level,
                    "clause": family.clause,
                    "suite": family.suite,
                    "generated": family.generated,
                    "count": family.count,
                }
                for family in families
            ]
        },
    )


# A target that can do and declares everything, so that every case can be shown.
EXAMPLE = msgspec.structs.replace(
    catalogue.EVERYTHING,
    limits=dict.fromkeys(LIMITS, 8192) | {"fields": 100},
    timeouts={"head_s": 5.0, "content_s": 5.0, "idle_s": 5.0, "write_s": 5.0},
    values=planted.learned(
        lambda _: (
            (
                b'HTTP/1.1 200 OK\r\nETag: "e"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n'
                b"Content-Length: %d\r\n\r\n%s"
            )
            % (len(planted.FILE_TEXT), planted.FILE_TEXT.encode("ascii"))
        ),
        catalogue.EVERYTHING,
    ),
)


def find(name: str, facts: Facts = EXAMPLE) -> tuple[Family, Planned]:
    """A case by its slug; a family's slug or number gives its first case.

    :param facts: of the target that the case is addressed to.
    :raises HarnessError: there is none, or it cannot be sent to that target; names the nearest.
    """
    known = catalogue.load()
    is_example = facts is EXAMPLE
    # Sent it can be wherever other paths lead; only what a refusal proves hangs on that.
    facts = msgspec.structs.replace(facts, capabilities=(*facts.capabilities, "catch_all", "early"))
    for family in known.families.values():
        named = name in (family.id, *family.refs)
        if not named and not (family.generated and name.startswith(family.id + "-")):
            continue
        if is_example and family.transport == "tls":
            facts = msgspec.structs.replace(facts, scheme="https")
        if why := known.inapplicable(family.id, facts):
            raise HarnessError(f"{family.id} cannot be sent there: {why}")
        if not conformance.has_octets(known, family.id):
            raise HarnessError(f"{family.id} sends nothing of its own: it looks at other answers")
        for planned in known.planned(family.id, facts):
            if named or planned.case.id == name:
                return family, planned
    words = [word for family in known.families.values() for word in (family.id, *family.refs)]
    near = difflib.get_close_matches(name, words, 1)
    hint = f"did you mean {near[0]}?" if near else "`httpmark list cases` shows all"
    raise HarnessError(f"no case {name!r}: {hint}")


def visible(text: bytes) -> str:
    """Octets as text that can be told apart: escapes as scenario files write them."""
    named = {0x0D: "\\r", 0x0A: "\\n", 0x09: "\\t", 0x5C: "\\x5c"}
    return "".join(
        named.get(octet) or (chr(octet) if 0x20 <= octet < 0x7F else f"\\x{octet:02x}")
        for octet in text
    )


def lines(message: bytes) -> str:
    """The same, a line of the message on each line."""
    shown = message[:_SHOWN_OCTETS]
    text = visible(shown).replace("\\r\\n", "\\r\\n\n").rstrip("\n")
    rest = len(message) - len(shown)
    return text + (f"\n... and {rest} octets more" if rest else "")


_CURL_FIELDS = re.compile(rb"[ -~]*")


def curl(message: bytes, *, address: str, port: int | str) -> str | None:
    """The same with curl, which can say it where the request is whole, valid and plain."""
    read = request_reader.read(message)
    if len(read.requests) != 1 or read.certain != len(message):
        return None
    [request] = read.requests
    if not (request.valid and request.whole) or request.target[:1] != b"/" or request.minor != 1:
        return None
    head, _, content = message.partition(b"\r\n\r\n")
    fields = [line for line in head.split(b"\r\n")[1:] if line]
    names = [line.partition(b":")[0].lower() for line in fields]
    if b"transfer-encoding" in names or not all(map(_CURL_FIELDS.fullmatch, (*fields, content))):
        return None
    kept = [
        line.decode() for line, name in zip(fields, names, strict=True)
        if name not in (b"host", b"content-length")
    ]  # fmt: skip
    method = request.method.decode("latin-1")
    words = ["curl", "-i", "--path-as-is", "-H", "User-Agent:", "-H", "Accept:"]
    words += ["-I"] if method == "HEAD" else [] if method == "GET" else ["-X", method]
    for line in kept:
        # An empty value ends in a semicolon there: a colon would take the field away.
        name, _, value = line.partition(":")
        words += ["-H", line if value.strip() else f"{name};"]
    if b"content-length" in names:
        words += ["-H", "Content-Type:", "--data-binary", content.decode()]
    words.append(f"http://{address}:{port}{request.target.decode('latin-1')}")
    return " ".join(shlex.quote(word) for word in words)


def explain(name: str) -> str:
    """The rule of a case, its octets and one-line reproducers; of another word that a report says,
    what it means: a requirement, a check on every answer, a family, a clause, a verdict.

    :raises HarnessError: there is no such case, and no such word.
    """
    others = list(_others(name))
    try:
        told = _of_case(*find(name))
    except HarnessError:
        if not others:
            raise
        return "\n\n".join(others)
    return "\n\n".join((told, *others))


def _others(name: str) -> Iterator[str]:
    """What else than a case a word of a report names."""
    known = catalogue.load()
    for row in known.requirements:
        if row.id == name:
            yield _of_requirement(known, row)
    group, _, level = name.partition("/")
    if level in _LEVELS and any(
        family.group.lower() == group for family in known.families.values()
    ):
        yield f"{name}: the cases of {group.upper()} at that level that no row of the ledger names"
    if (check := response_checks.CHECKS.get(name.upper())) is not None:
        yield _of_check(known, check)
    if name.endswith(gates.CUT):
        yield _of_deliveries(name.removesuffix(gates.CUT))
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
    for server in servers.servers():
        if server.name == name:
            yield f"{name}: {server.title} {server.version}, {server.homepage or 'of this project'}"
    mode = delivery.mode_of(name)
    told = glossary.meaning(mode if "@" in name and mode in delivery.MODES else name)
    if told is not None:
        yield "\n".join(textwrap.wrap(told, 80, subsequent_indent="  "))
    asked = english.wanted(name)
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
    """Cases, a line each, as many as one reads."""
    rows = [
        f"  {one.id:34.34} {one.ref:9.9} {one.level:6} "
        f"{textwrap.shorten(one.title, 26, placeholder='...')}".rstrip()
        for one in families
    ]
    more = len(rows) - _LISTED_MAX
    return [*rows[:_LISTED_MAX], *([f"  and {more} more: httpmark list cases"] if more > 0 else [])]


def _of_requirement(known: catalogue.Catalogue, row: Requirement) -> str:
    """A row of the ledger, and the cases that show it."""
    shows = score.showing(row)
    shown = [
        family
        for family in known.families.values()
        if shows(family.refs or (family.ref,), family.group)
    ]
    checks = [check for check in response_checks.CHECKS if shows((check,), check)]
    by_cuts = [one for one in row.cases if one == segmentation.NOT_EARLY]
    return "\n".join(
        (
            f"{row.id} (a requirement: met when all its cases pass)",
            f"  {row.level}: {row.clause}",
            *_wrapped(row.title),
            *([f"  shown by {_cases(shown)}:", *_listed(shown)] if shown else []),
            *(f"  shown by {one}: {response_checks.CHECKS[one].title}" for one in checks),
            *(f"  shown by {one}: httpmark check TARGET --full" for one in by_cuts),
        )
    )


def _of_check(known: catalogue.Catalogue, check: response_checks.Check) -> str:
    """A check on every answer: it sends nothing of its own."""
    rows = [row.id for row in known.requirements if score.showing(row)((check.id,), check.id)]
    return "\n".join(
        (
            f"{check.id} (a check on every answer of every case)",
            f"  {check.level}: {check.clause}",
            *_wrapped(check.title),
            *([f"  decides the requirement {', '.join(rows)}"] if rows else []),
            "  it sends nothing: a report names the case whose answer failed, and",
            "  httpmark replay CASE TARGET tells what it finds in that answer",
        )
    )


def _of_deliveries(case: str) -> str:
    """The finding that a message's answer depends on how it is cut."""
    family, planned = find(case)
    if not delivery.is_delivered(family, planned.case.id):
        raise HarnessError(f"{case}: this message is not sent in cuts")
    return "\n".join(
        (
            f"{case}{gates.CUT}: the answer to {case} depends on where its octets are cut",
            "  it went out in one write, twice alike, then cut; what differs was asked 3 times",
            f"  cuts: {', '.join(delivery.MODES)}; httpmark explain CUT tells each",
            f"to send it cut: httpmark replay {case} http://127.0.0.1:PORT/ --delivery two@17",
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
    elif (runner := runners.RUNNERS.get(family.runner or "")) is not None:
        lines_ += _wrapped(f"played by a program: {runners.says(runner)}")
    else:
        for word, asked in (
            ("passes: ", planned.expectation.text),
            ("allowed:", planned.expectation.allowed_text.replace(" (noted)", "")),
        ):
            lines_ += _wrapped(f"{word} {english.wanted(asked)} [{asked}]") if asked else []
    if family.contested:
        lines_ += _wrapped(f"contested: {family.contested}")
    if family.advisories:
        lines_ += _wrapped(f"seen in: {', '.join(family.advisories)}")
    own = _own(case)
    lines_ += _played(own)
    if family.runner is not None:
        lines_.append(f"to play it: httpmark check http://127.0.0.1:PORT/ --case {case.id}")
        return "\n".join(lines_)
    lines_.append("to send it by hand:")
    where = octets.Place("127.0.0.1", tls=family.transport == "tls")
    scheme = "https" if where.tls else "http"
    lines_ += _by_hand(own, where) or [f"httpmark replay {case.id} {scheme}://127.0.0.1:PORT/"]
    return "\n".join(lines_)


def _wrapped(text: str) -> list[str]:
    """Text that belongs to the line above, for a terminal."""
    return textwrap.wrap(text, 80, initial_indent="  ", subsequent_indent="    ")


def _by_hand(own: Sequence[Step], where: octets.Place) -> list[str]:
    """The lines of shell that send a case, as far as one would copy them; none where no line can
    say it."""
    writes = [step.data for step in own if step.op is Op.SEND]
    half_close = any(step.op is Op.FIN for step in own)
    if any(step.op is Op.RESET for step in own) or (half_close and where.tls):
        return []
    lines_ = []
    if len(writes) == 1 and not half_close:
        lines_.append(octets.piped(writes[0], where))
        if not where.tls and (line := curl(writes[0], address=where.address, port=where.port)):
            lines_.append(line)
    lines_.append(octets.scripted(*writes, where=where, half_close=half_close))
    return [line for line in lines_ if len(line) <= octets.LINE_CHARACTERS_MAX]


def _own(case: Case) -> list[Step]:
    """The steps of a case before its canary and the watching that goes before that."""
    steps = list(case.steps)
    if case.canary and not case.joined:
        while steps and steps[-1].data != case.canary:
            steps.pop()
        steps = steps[:-1]
    while steps and steps[-1].op in (Op.AWAIT, Op.WATCH) and len(steps) > 1:
        steps.pop()
    return steps


def _played(steps: Iterable[Step]) -> list[str]:
    """A talk in words: what is sent, and what is waited for in between."""
    told: list[str] = []
    for step in steps:
        seconds = f"{step.wait_ms / 1000:g} s"
        match step.op:
            case Op.SEND if step.if_unanswered:
                told += ["sent where no answer has come:", lines(step.data)]
            case Op.SEND:
                told += ["sent:", lines(step.data)]
            case Op.AWAIT:
                told.append(f"(until an answer comes, at most {seconds})")
            case Op.FIN:
                told.append("(half-close)")
            case Op.RESET:
                told.append("(reset)")
            case Op.PAUSE:
                told.append(f"({seconds} later)")
            case _:
                told.append(f"(until a close, at most {seconds})")
    return told


def replay(name: str, target: conformance.Target, *, hardened: bool = False) -> str:
    """Send one case and show both sides of the wire, the outcome and the verdict.

    :param hardened: judge by the ruleset of that name.
    :raises HarnessError: there is no such case.
    """
    family, planned = _addressed(name, target)
    if family.runner is not None:
        raise HarnessError(
            f"{planned.case.id} is played by a program: "
            f"httpmark check TARGET --suite {family.suite} --case {planned.case.id}"
        )
    exchange = _sent(planned.case, target)
    if planned.expectation is None:
        verdict = judge.judge(family, exchange)
    else:
        verdict = judge.Judge(hardened=hardened).judge(planned, exchange)
    verdict = scoring.strict(verdict, family) if hardened else verdict
    return "\n".join(
        (
            f"{planned.case.id} to {target.place}",
            "sent:",
            lines(Mask(target.header).sent(exchange.sent[: exchange.sent_octets])),
            *_came("received", exchange, target),
            f"expected: {_with_words(verdict.expected)}",
            f"actual:   {english.came(verdict.actual)}",
            f"verdict:  {verdict.word}",
            *_of_every_answer(planned.case, exchange, target.facts()),
        )
    )


def replay_cut(name: str, target: conformance.Target, cut: str) -> str:
    """Send a case in one write, and in the cut that is named, and show how the answers differ.

    :param cut: a word of ``delivery``, as a finding on deliveries names it: ``two@17``.
    :raises HarnessError: there is no such case, it is not cut, or not so.
    """
    family, planned = _addressed(name, target)
    case = planned.case
    if not delivery.is_delivered(family, case.id):
        raise HarnessError(f"{case.id}: this message is not sent in cuts")
    whole = delivery.one(case)
    exchanges = [_sent(whole, target), _sent(whole, target)]
    alone = tuple(delivery.drawn(whole, exchange) for exchange in exchanges)
    known = segmentation.depends(case, target.facts(), alone, delivery.BUFFERS)
    shown = [
        f"{case.id} to {target.place}",
        "sent:",
        lines(Mask(target.header).sent(delivery.message(case))),
        *_came("received, in one write", exchanges[0], target),
    ]
    if known is None:
        return "\n".join((*shown, "in one write it does not draw the same twice"))
    mode = delivery.mode_of(cut)
    made = delivery.deliveries(case, mode, known) if mode in delivery.MODES else ()
    chosen = next((one for one in made if one.delivery == cut), None)
    if chosen is None:
        raise HarnessError(f"{case.id}: no delivery {cut!r} of it; name one as two@17")
    drawn = [_sent(chosen, target) for _ in range(_TIMES)]
    told = [segmentation.unlike(family, alone[0], chosen, exchange) for exchange in drawn]
    differing = [one for one in told if one]
    own = [step for step in _own(chosen) if step.op in (Op.SEND, Op.PAUSE)]
    writes = sum(step.op is Op.SEND for step in own)
    if writes <= _WRITES_SHOWN:
        shown += _played(_masked(own, Mask(target.header)))
    differs = (
        f"differs: {differing[-1]} ({len(differing)}" if differing else f"is the same ({_TIMES}"
    )
    return "\n".join(
        (
            *shown,
            *_came(f"received, cut as {cut} in {writes} writes", drawn[-1], target),
            f"the answer {differs} of {_TIMES} times)",
        )
    )


def _masked(steps: Sequence[Step], mask: Mask) -> Iterator[Step]:
    """The same steps without the user's own values, which a cut may go through."""
    rest = mask.sent(b"".join(step.data for step in steps))
    for step in steps:
        data, rest = rest[: len(step.data)], rest[len(step.data) :]
        yield msgspec.structs.replace(step, data=data)


_TIMES = 3  # a cut counts that differs every time it is asked
_WRITES_SHOWN = 6


def _came(what: str, exchange: Exchange, target: conformance.Target) -> list[str]:
    """What came back, under a heading."""
    return [
        f"{what} ({exchange.outcome}, connection {exchange.end}, {exchange.end_us} us):",
        lines(Mask(target.header).received(exchange.received)) or "(nothing)",
    ]


def _sent(case: Case, target: conformance.Target) -> Exchange:
    """What a case draws, alone."""
    with Talker(target.probe(in_flight=1)) as talker:
        return talker.play(case)


def _with_words(expected: str) -> str:
    """An expectation in plain English, and in the catalogue's words where those are others."""
    said = english.wanted(expected)
    return said if said == expected else f"{said} [{expected}]"


def _addressed(name: str, target: conformance.Target) -> tuple[Family, Planned]:
    """A case for a target that is asked first for what the case needs to know, as ``check`` does.

    :raises HarnessError: there is no such case.
    """
    known = catalogue.load()
    family, _ = find(name)
    return find(name, conformance.asked(known, [family.id], target, None).facts())


def _of_every_answer(case: Case, exchange: Exchange, facts: Facts) -> list[str]:
    """What the checks on every answer find wrong with this one."""
    answers = response_checks.Collected(facts)
    answers.add(case, exchange)
    return [
        f"{number}:  {failed.actual}"
        for number, tally in answers.tallies().items()
        for failed in tally.failures
    ]


def minimised(name: str, target: conformance.Target, *, hardened: bool = False) -> str:
    """The fewest octets that break the same rule and draw the same verdict as a case, with a
    reproducer; of several writes the first gets smaller.

    :param hardened: judge by the ruleset of that name.
    :raises HarnessError: there is no such case, or it begins with no write.
    """
    family, planned = _addressed(name, target)
    case = planned.case
    if planned.expectation is None or not shrinking.begins_with_a_write(planned):
        raise HarnessError(f"{case.id}: only what begins with a write can be made smaller")
    exchange = _sent(case, target)
    verdict = judge.Judge(hardened=hardened).judge(planned, exchange)
    word = (scoring.strict(verdict, family) if hardened else verdict).word
    if word not in (Word.FAIL, Word.WARN):
        return f"{case.id}: {word}; nothing to make smaller"
    whole = len(delivery.message(case))
    one = shrinking.subject(family, planned, exchange, hardened=hardened)
    if one is None:
        return f"{case.id}: {word}; only the whole request shows it, all {whole} octets"
    found = [small for _, small in shrinking.smallest([one], target)]
    if not found:
        return f"{case.id}: {word}, with all {whole} octets: fewer do not show it"
    small = msgspec.structs.replace(found[0], sent=Mask(target.header).sent(found[0].sent))
    left = octets.own(small)
    line = octets.by_hand(small, target.facts(), with_canary=False)
    return "\n".join(
        (
            f"{case.id}: {word}, with {len(left)} of {whole} octets:",
            lines(left),
            line or octets.piped(left, octets.place(target.facts())),
        )
    )
