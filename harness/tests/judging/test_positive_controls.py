"""Good requests have to be accepted before a score counts."""

from __future__ import annotations

from httpmark.harness.catalogue import loading
from httpmark.harness.judging import positive_controls
from httpmark.harness.model.cases import Level
from httpmark.harness.model.verdicts import Verdict, Word

FAMILIES = loading.load().of_suite("seed")
SCORED = [family for family in FAMILIES if family.level is not Level.CTRL]


def test_a_void_control_does_not_pass() -> None:
    assert positive_controls.controls([Verdict("c", Word.VOID, "", "")]).failed == 1


def test_a_gate_with_a_star_blocks_the_whole_suite() -> None:
    assert set(positive_controls.gated(FAMILIES, ["control_hello"])) == {
        family.id for family in SCORED
    }
    assert positive_controls.gated(FAMILIES, ["control_query_octet"]) == (
        "query_byte",
        "query_pct_pair",
    )
    assert positive_controls.gated(FAMILIES, []) == ()


def test_every_scored_family_has_a_control_of_its_own() -> None:
    gates = {gate for f in FAMILIES if f.level is Level.CTRL for gate in f.gates}
    assert gates == {family.id for family in SCORED} | {"*"}
