"""What readers of the RFC differ on binds nobody."""

from __future__ import annotations

import msgspec

from httpmark.harness.catalogue import loading, lookup
from httpmark.harness.model.cases import Level

KNOWN = loading.load()
CONTESTED = [family for family in KNOWN.families.values() if family.contested]


def test_no_contested_case_binds() -> None:
    assert CONTESTED, "there are contested cases"
    facts = msgspec.structs.replace(lookup.EXAMPLE, scheme="http")
    for family in CONTESTED:
        assert not family.level.is_binding, family.id
        if KNOWN.inapplicable(family.id, facts) is None:
            levels = {planned.level for planned in KNOWN.planned(family.id, facts)}
            assert not any(level.is_binding for level in levels), family.id


def test_a_contested_must_is_told_as_should() -> None:
    assert Level.MUST.unless_contested("two readings") is Level.SHOULD
    assert Level.CTRL.unless_contested("two readings") is Level.SHOULD
    assert Level.MUST.unless_contested(None) is Level.MUST
    assert Level.MAY.unless_contested("two readings") is Level.MAY
