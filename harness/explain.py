"""What there is, and what one case says: its rule, its octets, a reproducer, and both sides of
the wire when it is sent again."""

from __future__ import annotations

import difflib
import shlex
from typing import Any

import msgspec

from httpmark.harness import catalogue, conformance, judge, runtime, servers
from httpmark.harness.catalogue import Planned
from httpmark.harness.model import Exchange, Facts, Family, HarnessError

_SHOWN_OCTETS = 2048
_REPRODUCED_OCTETS = 8192


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


def find(name: str, facts: Facts = catalogue.EVERYTHING) -> tuple[Family, Planned]:
    """A case by its slug; a family's slug or number gives its first case.

    :param facts: of the target that the case is addressed to.
    :raises HarnessError: there is none, or it cannot be sent to that target; names the nearest.
    """
    known = catalogue.load()
    # Sent it can be wherever other paths lead; only what a refusal proves hangs on that.
    facts = msgspec.structs.replace(facts, capabilities=(*facts.capabilities, "catch_all"))
    for family in known.families.values():
        named = name in (family.id, *family.refs)
        if not named and not (family.generated and name.startswith(family.id + "-")):
            continue
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


def visible(octets: bytes) -> str:
    """Octets as text that can be told apart: escapes as scenario files write them."""
    named = {0x0D: "\\r", 0x0A: "\\n", 0x09: "\\t", 0x5C: "\\x5c"}
    return "".join(
        named.get(octet) or (chr(octet) if 0x20 <= octet < 0x7F else f"\\x{octet:02x}")
        for octet in octets
    )


def lines(octets: bytes) -> str:
    """The same, a line of the message on each line."""
    shown = octets[:_SHOWN_OCTETS]
    text = visible(shown).replace("\\r\\n", "\\r\\n\n").rstrip("\n")
    rest = len(octets) - len(shown)
    return text + (f"\n... and {rest} octets more" if rest else "")


def reproducer(octets: bytes, *, address: str, port: int | str) -> str:
    """One shell line that sends the octets: printf and nc."""
    escaped = "".join(f"\\{octet:03o}" if not _plain(octet) else chr(octet) for octet in octets)
    return f"printf {shlex.quote(escaped)} | nc -q 1 {address} {port}"


def _plain(octet: int) -> bool:
    return 0x20 <= octet < 0x7F and chr(octet) not in "\\%'"


def script(octets: bytes, *, address: str, port: int | str) -> str:
    """The same with Python alone, for octets a shell cannot hold."""
    return "python3 -c " + shlex.quote(
        f"import socket; s = socket.create_connection(({address!r}, {port})); "
        f"s.sendall({octets!r}); s.settimeout(2); print(s.recv(65536))"
    )


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
    else:
        lines_.append(f"  passes:  {planned.expectation.text}")
        if planned.expectation.allowed_text:
            lines_.append(f"  allowed: {planned.expectation.allowed_text}")
    if family.contested:
        lines_.append(f"  contested: {family.contested}")
    if family.advisories:
        lines_.append(f"  seen in: {', '.join(family.advisories)}")
    own = case.sent.removesuffix(case.canary) if case.canary and not case.joined else case.sent
    lines_ += ["sent:", lines(own), "to send it by hand:"]
    if len(own) <= _REPRODUCED_OCTETS:
        lines_.append(reproducer(own, address="127.0.0.1", port="PORT"))
        lines_.append(script(own, address="127.0.0.1", port="PORT"))
    else:
        lines_.append(f"httpmark replay {case.id} http://127.0.0.1:PORT/")
    return "\n".join(lines_)


def replay(name: str, target: conformance.Target) -> str:
    """Send one case and show both sides of the wire, the outcome and the verdict.

    :raises HarnessError: there is no such case.
    """
    family, planned = find(name, target.facts())
    found: list[Exchange] = []
    with target.probe(in_flight=1) as probe:
        for batch in probe.fire([planned.case]):
            found += batch
    exchange = found[0]
    if planned.expectation is None:
        verdict = judge.judge(family, exchange)
    else:
        verdict = judge.Judge().judge(planned, exchange)
    return "\n".join(
        (
            f"{planned.case.id} to {target.place}",
            "sent:",
            lines(exchange.sent[: exchange.sent_octets]),
            f"received ({exchange.outcome}, connection {exchange.end}, {exchange.end_us} us):",
            lines(exchange.received) or "(nothing)",
            f"expected: {verdict.expected}",
            f"actual:   {verdict.actual}",
            f"verdict:  {verdict.word}",
        )
    )
