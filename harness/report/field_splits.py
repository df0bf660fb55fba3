"""The messages that the servers of a run read in two ways, from its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.judging import message_readings, observation
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.message_readings import Reading, Split
from httpmark.harness.model.cases import Facts, Family

SUITES = ("smuggling", "rfc")
"""The suites whose messages are compared: each of them is sent alike to every server."""


def splits(known: Catalogue, servers: Mapping[str, Evidence]) -> tuple[Split, ...]:
    """Where two servers disagree on where a request ends, smuggling first.

    :param servers: in the order in which they are told, each with the evidence of its run.
    """
    facts = {name: told for name, one in servers.items() if (told := one.facts(name)) is not None}
    found: list[Split] = []
    for suite in SUITES:
        for family in known.of_suite(suite):
            # A pipeline holds several requests: who refuses one of them reads them no other way.
            if family.generated or family.runner is not None or family.group == "PIPE":
                continue
            read: dict[str, dict[str, Reading]] = {}
            for name, own in facts.items():
                for case, reading in _readings(known, servers[name], family, name, own):
                    read.setdefault(case, {})[name] = reading
            made = (
                message_readings.split(case, family.title, family.clause, by_server, tuple(servers))
                for case, by_server in read.items()
            )
            found += [one for one in made if one is not None]
    return tuple(found)


def _readings(
    known: Catalogue, evidence: Evidence, family: Family, server: str, facts: Facts
) -> Iterator[tuple[str, Reading]]:
    exchanges = list(evidence.exchanges(server, family=family.id))
    if not exchanges or known.inapplicable(family.id, facts) is not None:
        return
    cases = {one.case.id: one.case for one in known.planned(family.id, facts)}
    for exchange in exchanges:
        case = cases.get(exchange.case)
        if case is None:
            continue
        reading = message_readings.reading(case, observation.sight(case, exchange))
        if reading is not None:
            yield exchange.case, reading
