"""Finds a case by its slug or number."""

from __future__ import annotations

import difflib

import msgspec

from httpmark.harness.catalogue import loading, vocabulary
from httpmark.harness.catalogue.catalogue import Catalogue, Planned
from httpmark.harness.model.cases import FILE_TEXT, SECRET, SECRET_TEXT, Facts, Family
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.servers import LIMITS


def has_octets(catalogue: Catalogue, family: str) -> bool:
    """Whether an entry sends bytes of its own; a view only looks at the answers to other cases."""
    rule = catalogue.rules[family]
    return bool(rule.sends or rule.steps)


# A target that can do everything and declares everything, so that every case can be shown.
EXAMPLE = msgspec.structs.replace(
    vocabulary.EVERYTHING,
    limits=dict.fromkeys(LIMITS, 8192) | {"fields": 100},
    timeouts={"head_s": 5.0, "content_s": 5.0, "idle_s": 5.0, "write_s": 5.0},
    values={
        "secret": SECRET,
        "secret_text": SECRET_TEXT,
        "file_text": FILE_TEXT,
        "etag": '"e"',
        # The three formats of RFC 9110, section 5.6.7, as its own example has them.
        "modified": "Sun, 06 Nov 1994 08:49:37 GMT",
        "modified_rfc850": "Sunday, 06-Nov-94 08:49:37 GMT",
        "modified_asctime": "Sun Nov  6 08:49:37 1994",
    },
)


def find(name: str, facts: Facts = EXAMPLE) -> tuple[Family, Planned]:
    """A case by its slug; a family's slug or number gives its first case.

    :param facts: of the target that the case is addressed to.
    :raises HarnessError: there is none, or it cannot be sent to that target; names the nearest.
    """
    found = find_exactly(name, facts)
    if found is None:
        families = loading.load().families.values()
        words = [word for family in families for word in (family.id, *family.refs)]
        near = difflib.get_close_matches(name, words, 1)
        hint = f"did you mean {near[0]}?" if near else "`httpmark list cases` shows all"
        raise HarnessError(f"no case {name!r}: {hint}")
    return found


def find_exactly(name: str, facts: Facts = EXAMPLE) -> tuple[Family, Planned] | None:
    """The same; None where there is none of that name.

    :raises HarnessError: it cannot be sent to that target.
    """
    known = loading.load()
    is_example = facts is EXAMPLE
    # These decide only what a refusal proves: the case can be sent without them.
    shown = (*facts.capabilities, *vocabulary.FOUND_BY_ASKING)
    facts = msgspec.structs.replace(facts, capabilities=shown)
    for family in known.families.values():
        named = name in (family.id, *family.refs)
        if not named and not (family.generated and name.startswith(family.id + "-")):
            continue
        if is_example and family.transport == "tls":
            facts = msgspec.structs.replace(facts, scheme="https")
        if why := known.inapplicable(family.id, facts):
            raise HarnessError(f"{family.id} cannot be sent there: {why}")
        if not has_octets(known, family.id):
            raise HarnessError(
                f"{family.id} sends nothing of its own: it looks at the answers to other cases"
            )
        for planned in known.planned(family.id, facts):
            if named or planned.case.id == name:
                return family, planned
    return None
