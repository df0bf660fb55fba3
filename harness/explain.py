"""What there is, and what one case says: its rule, its octets, a reproducer, and both sides of
the wire when it is sent again."""

from __future__ import annotations

import difflib
import shlex
from typing import Any

from httpmark.harness import catalogue, check, judge, runtime, servers
from httpmark.harness.model import Case, Exchange, Family, HarnessError
from httpmark.harness.probe import Probe

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
        [f"{f.id:22} {f.level:6} {f.count:6} {f.title}" for f in families],
        {
            "cases": [
                {
                    "id": family.id,
                    "ref": family.ref,
                    "family": family.id,
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


def find(name: str, *, path: str = "/hello", host: str = "127.0.0.1") -> tuple[Family, Case]:
    """A case by its slug; a family's slug or number gives its first case.

    :raises HarnessError: there is none; names the nearest.
    """
    known = catalogue.load()
    for family in known.families.values():
        if name in (family.id, family.ref):
            return family, next(known.cases(family.id, path=path, host=host))
        if name.startswith(family.id + "-"):
            for case in known.cases(family.id, path=path, host=host):
                if case.id == name:
                    return family, case
    near = difflib.get_close_matches(name, list(known.families), 1)
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


def explain(name: str) -> str:
    """The rule of a case, its octets and a one-line reproducer.

    :raises HarnessError: there is no such case.
    """
    family, case = find(name)
    return "\n".join(
        (
            f"{case.id} ({family.ref}, suite {family.suite})",
            f"  {family.title}; one of {family.count}",
            f"  {family.level}: {family.clause}",
            f"  {family.why}",
            f"  judged by: {family.judged_by}",
            "sent:",
            lines(case.sent),
            "to send it by hand:",
            reproducer(case.sent, address="127.0.0.1", port="PORT"),
        )
    )


def replay(name: str, where: check.Address, *, path: str) -> str:
    """Send one case and show both sides of the wire, the outcome and the verdict.

    :raises HarnessError: there is no such case.
    """
    family, case = find(name, path=path, host=where.host)
    found: list[Exchange] = []
    with Probe(where.address, where.port, in_flight=1) as probe:
        for batch in probe.fire([case]):
            found += batch
    exchange = found[0]
    verdict = judge.judge(family, exchange)
    return "\n".join(
        (
            f"{case.id} to {where.address}:{where.port}",
            "sent:",
            lines(exchange.sent),
            f"received ({exchange.outcome}, connection {exchange.end}, {exchange.end_us} us):",
            lines(exchange.received) or "(nothing)",
            f"expected: {verdict.expected}",
            f"actual:   {verdict.actual}",
            f"verdict:  {verdict.word}",
        )
    )
