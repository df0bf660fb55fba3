"""Runs and findings of every kind, made by hand, for the tests of what is drawn from them."""

from __future__ import annotations

import msgspec

from httpmark.harness.catalogue import loading
from httpmark.harness.gate.findings import Finding, Status
from httpmark.harness.model.cases import Family, Level
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import (
    Compliance,
    Controls,
    SeedFamily,
    SuiteResult,
    Verdict,
    Word,
)
from httpmark.harness.tests.shared.made_run import RULES, made_run, with_server

OCTET_FAMILIES = tuple(name for name in RULES if name.endswith("byte"))
HOSTILE = "x<b>&\"'|]]>\x00\x1b[31m\u2028\ud800%0A::error::`@all` [a](http://evil)\n::error::y"


def run_of(name: str, suite: SuiteResult | None = None, /, **changes: object) -> Run:
    """A run of one server of the made run, perhaps with another result of its suite."""
    run = made_run((name,), only=OCTET_FAMILIES)
    run = msgspec.structs.replace(run, servers=run.servers[:1])
    if suite is not None:
        changes["compliance"] = Compliance({"seed": suite})
    return with_server(run, name, **changes)


def suite_of(name: str) -> SuiteResult:
    return run_of(name).servers[0].compliance.suites["seed"]


def families() -> dict[str, Family]:
    return loading.load().families


CONTROLS_FAIL = msgspec.structs.replace(
    suite_of("reference"),
    score_percent=None,
    reason="not scored: 3 of 345 positive controls failed",
    controls=Controls(342, 3, (Verdict("control_hello", Word.FAIL, "2xx", "404 Not Found"),)),
)
VOID = msgspec.structs.replace(
    suite_of("reference"),
    score_percent=None,
    reason="not scored: 2 of 558 requests have no valid outcome",
    families={
        **suite_of("reference").families,
        "path_byte": SeedFamily(173, 0, 173, 0, 0, 0, void=2),
    },
)
MUST_FAILS = SuiteResult(score_percent=98.0, must={"passed": 98, "failed": 2, "void": 0})


def mixed() -> Run:
    """A run with something of every kind."""
    run = made_run(("reference", "go_net_http", "rust_hyper", "null"), only=OCTET_FAMILIES)
    run = with_server(run, "rust_hyper", compliance=Compliance({"seed": VOID, "rfc": MUST_FAILS}))
    return with_server(run, "reference", compliance=Compliance({"seed": CONTROLS_FAIL}))


def hostile_run() -> Run:
    verdict = Verdict(HOSTILE, Word.FAIL, HOSTILE, HOSTILE)
    suite = msgspec.structs.replace(
        CONTROLS_FAIL, reason=HOSTILE, controls=Controls(1, 1, (verdict,))
    )
    return run_of("reference", suite, title=HOSTILE, version=HOSTILE, runtime=HOSTILE, died=HOSTILE)


def many(said: Status, number: int, message: str = "m") -> list[Finding]:
    return [
        Finding(
            server="s",
            suite="rfc",
            id=f"{said.value}{at}",
            title="t",
            level=Level.MUST,
            clause="RFC 9112 3",
            status=said,
            message=message,
        )
        for at in range(number)
    ]
