"""`httpmark list`: servers, suites, cases and profiles, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from httpmark.harness.catalogue import loading
from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.catalogue.vocabulary import FORWARDING
from httpmark.harness.firing import forwarding
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import brought, starting

_NAME_COLUMNS = 18


def grouped(servers: Iterable[Server]) -> list[Server]:
    """Servers by name; those that share an engine stand together, its own server first."""
    return sorted(
        servers, key=lambda one: (one.engine or one.name, bool(one.engine), one.name)
    )  # fmt: skip


def _forwarding(known: Catalogue) -> dict[str, Any]:
    """What ``run --suite forwarding`` plays: messages of its own, and cases of other suites."""
    facts = forwarding.facts_of("front.example", "127.0.0.1", 80)
    cases, _ = forwarding.chosen(known, facts)
    families = {one.case.family for one in cases}
    return {"name": FORWARDING, "families": len(families), "cases": len(cases)}


def listing(what: str, field: brought.Field) -> tuple[list[str], dict[str, Any]]:
    """The rows that are printed, and the value for ``--json``."""
    if what == "servers":
        found = [starting.listed(server) for server in grouped(field.servers())]
        rows = []
        for server in found:
            shares = server["engine"] != server["name"]
            shared = f" (its HTTP parser is that of {server['engine']})" if shares else ""
            untried = "" if server["tried"] else ", not tried here"
            rows.append(f"{server['name']:{_NAME_COLUMNS}} {server['version']}{untried}{shared}")
            rows += [
                f"{'':{_NAME_COLUMNS}} {name}: {'available' if state is True else state}"
                for name, state in server["available"].items()
            ]
        return rows, {"servers": found}
    known = loading.load()
    if what == "suites":
        value = [
            {
                "name": suite,
                "families": len(known.of_suite(suite)),
                "cases": sum(family.count for family in known.of_suite(suite)),
            }
            for suite in known.suites
        ]
        value.append(_forwarding(known))
        return (
            [f"{v['name']:14} {v['cases']} cases in {v['families']} families" for v in value[:-1]]
            + [f"{FORWARDING:14} {value[-1]['cases']} cases, of reverse proxies alone ([proxy])"],
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
