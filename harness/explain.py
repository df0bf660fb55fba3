"""What there is, and what one case says: its rule, its octets, a reproducer, and both sides of
the wire when it is sent again."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from httpmark.harness import (
    catalogue,
    conformance,
    english,
    judge,
    minimise,
    octets,
    planted,
    request_reader,
    response_checks,
    runners,
    runtime,
    servers,
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
    Op,
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
    """The rule of a case, its octets and one-line reproducers.

    :raises HarnessError: there is no such case.
    """
    family, planned = find(name)
    case = planned.case
    lines_ = [
        f"{case.id} ({', '.join(family.refs)}, suite {family.suite})",
        f"  {family.title}" + (f"; one of {family.count}" if family.generated else ""),
        f"  {planned.level}: {family.clause}",
        f"  {family.why}",
    ]
    if planned.expectation is None:
        lines_.append(f"  judged by: {family.judged_by}")
    elif (runner := runners.RUNNERS.get(family.runner or "")) is not None:
        lines_.append(f"  played by a program: {runners.says(runner)}")
    else:
        for word, asked in (
            ("passes: ", planned.expectation.text),
            ("allowed:", planned.expectation.allowed_text.replace(" (noted)", "")),
        ):
            lines_ += [f"  {word} {english.wanted(asked)} [{asked}]"] if asked else []
    if family.contested:
        lines_.append(f"  contested: {family.contested}")
    if family.advisories:
        lines_.append(f"  seen in: {', '.join(family.advisories)}")
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
    found: list[Exchange] = []
    with target.probe(in_flight=1) as probe:
        for batch in probe.fire([planned.case]):
            found += batch
    exchange = found[0]
    if planned.expectation is None:
        verdict = judge.judge(family, exchange)
    else:
        verdict = judge.Judge(hardened=hardened).judge(planned, exchange)
    verdict = conformance.strict(verdict, family) if hardened else verdict
    mask = Mask(target.header)
    return "\n".join(
        (
            f"{planned.case.id} to {target.place}",
            "sent:",
            lines(mask.sent(exchange.sent[: exchange.sent_octets])),
            f"received ({exchange.outcome}, connection {exchange.end}, {exchange.end_us} us):",
            lines(mask.received(exchange.received)) or "(nothing)",
            f"expected: {_with_words(verdict.expected)}",
            f"actual:   {english.came(verdict.actual)}",
            f"verdict:  {verdict.word}",
            *_of_every_answer(planned.case, exchange, target.facts()),
        )
    )


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


def minimised(name: str, target: conformance.Target) -> str:
    """The smallest octets that draw the same verdict as a case, with a reproducer.

    :raises HarnessError: there is no such case, or it is more than one write.
    """
    _, planned = _addressed(name, target)
    case = planned.case
    own = [step for step in case.steps if step.op is Op.SEND and step.data != case.canary]
    if planned.expectation is None or len(own) != 1 or case.steps[0] is not own[0]:
        raise HarnessError(f"{case.id}: only a case of one write can be made smaller")
    judging = judge.Judge()
    with Talker(target.probe(in_flight=1)) as talker:

        def word(message: bytes) -> Word:
            steps = (msgspec.structs.replace(case.steps[0], data=message), *case.steps[1:])
            tried = msgspec.structs.replace(case, steps=steps)
            exchange = talker.play(tried)
            shown = msgspec.structs.replace(planned, case=tried)
            return judging.judge(shown, exchange).word

        wanted = word(case.steps[0].data)
        if wanted not in (Word.FAIL, Word.WARN):
            return f"{case.id}: {wanted}; nothing to make smaller"
        small = minimise.smallest(case.steps[0].data, lambda message: word(message) is wanted)
    shown = Mask(target.header).sent(small)
    return "\n".join(
        (
            f"{case.id}: {wanted}, with {len(small)} of {len(case.steps[0].data)} octets:",
            lines(shown),
            octets.piped(shown, octets.place(target.facts())),
        )
    )
