"""Checks that entries of both kinds share.

``where`` is the beginning of each complaint: file, entry and the word "key". A check raises
:class:`HarnessError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from httpmark.harness.catalogue import case_builder, notation, step_notation
from httpmark.harness.catalogue.family_rules import Rule
from httpmark.harness.catalogue.mistakes import Collected
from httpmark.harness.catalogue.scenario_keys import CaseEntry, FamilyEntry, Texts
from httpmark.harness.catalogue.vocabulary import (
    CAPABILITIES,
    DECLARED,
    EVERYTHING,
    SUITES,
)
from httpmark.harness.model.cases import Level
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.servers import LIMITS, TIMEOUTS

_SLUG = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
_CLAUSE = re.compile(
    r"RFC [0-9]{4} [0-9A-Z][0-9A-Z.]*(?:, (?:RFC [0-9]{4} )?[0-9A-Z][0-9A-Z.]*|, erratum [0-9]+)*"
)
_METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
CANARIES = ("after", "joined", "none")
PLACES = ("auto", "mirror", "body", "hello")


def check_suite(suite: str, where: str) -> None:
    """The suite is one of :data:`SUITES`."""
    if suite not in SUITES:
        raise HarnessError(f"{where} 'suite': no suite {suite!r}; known are {', '.join(SUITES)}")


def check_needs(needs: Iterable[str], where: str) -> None:
    """Each need is a capability, several joined by ``|``, ``timeout.NAME`` or ``declared.NAME``."""
    for need in needs:
        kind, _, name = need.partition(".")
        if kind in ("timeout", "declared"):
            if name not in TIMEOUTS:
                known = ", ".join(TIMEOUTS)
                raise HarnessError(f"{where} 'needs': no timeout {name!r}; known are {known}")
        elif not CAPABILITIES.issuperset(need.split("|")):
            known = ", ".join(sorted(CAPABILITIES))
            raise HarnessError(f"{where} 'needs': no capability {need!r}; known are {known}")


def check_clause(clause: str | None, where: str) -> None:
    """The clause, where there is one, names places in RFCs."""
    if clause is not None and not _CLAUSE.fullmatch(clause):
        raise HarnessError(
            f"{where} 'clause': {clause!r} is no place in an RFC; "
            "write it as 'RFC 9112 6.3, RFC 9110 8.6'"
        )


def check_declared(texts: Iterable[str], where: str, key: str) -> None:
    """Limits and timeouts that a text names are among those that a server can declare."""
    for text in texts:
        for match in DECLARED.finditer(text):
            kind, name = (match[1], match[2]) if match[1] else (match[3], match[4])
            known = LIMITS if kind == "limit" else TIMEOUTS
            if name not in known:
                raise HarnessError(
                    f"{where} {key!r}: no {kind} {name!r}; known are {', '.join(known)}"
                )


def check_gates(gates: tuple[str, ...], level: Level | None, where: str) -> None:
    """Only a positive control gates."""
    if gates and level is not Level.CTRL:
        raise HarnessError(f"{where} 'gates': only a positive control (CTRL) gates")


def check_steps(steps: Iterable[str], where: str) -> None:
    """Each step is in the notation."""
    for step in steps:
        if complaint := step_notation.complaint(step):
            raise HarnessError(f"{where} 'steps': {complaint}")


def check_shared_keys(text: CaseEntry | FamilyEntry, where: str, told: Collected) -> None:
    """Note what is wrong with single keys that cases and families share."""
    if not _SLUG.fullmatch(text.id):
        told.lines.append(f"{where} 'id': write lower-case words joined by _ or -")
    with told.noting():
        check_clause(text.clause, where)
    with told.noting():
        check_needs(text.needs or (), where)
    if text.answer_ms is not None and text.answer_ms <= 0:
        told.lines.append(f"{where} 'answer_ms': {text.answer_ms} must be above 0")
    for method in text.methods or ():
        if not _METHOD.fullmatch(method):
            told.lines.append(f"{where} 'methods': {method!r} is no method")
    for key in ("send", "steps", "allow", "noted", "hardened"):
        with told.noting():
            check_declared(listed(getattr(text, key)), where, key)
    with told.noting():
        check_declared(listed(text.judged_by), where, "pass")
    with told.noting():
        check_declared(text.let.values(), where, "let")


def listed(texts: Texts | None) -> tuple[str, ...]:
    """Texts of a key that may hold one or several."""
    return (texts,) if isinstance(texts, str) else tuple(texts or ())


def one_of(value: str, known: tuple[str, ...], where: str, key: str) -> str:
    """The value of a key that has few.

    :raises HarnessError: it is none of them.
    """
    if value not in known:
        raise HarnessError(f"{where} {key!r}: {value!r} is none of {', '.join(known)}")
    return value


def build_one(rule: Rule, where: str) -> None:
    """Build the first case of a rule, for a target that can do everything: its texts are right.

    :raises HarnessError: a text is not in the notation.
    """
    if not rule.sends and not rule.steps:
        return
    try:
        next(case_builder.cases("x", rule, EVERYTHING))
    except notation.Unknown:
        pass  # a limit that not every target declares
    except UnicodeEncodeError:
        raise HarnessError(f"{where} 'send': write bytes above 0x7F as \\xNN") from None
    except ValueError as error:
        raise HarnessError(f"{where} 'send': {error}") from None
