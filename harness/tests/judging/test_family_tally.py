"""The verdicts of a family, folded."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import msgspec

from httpmark.harness.judging.family_tally import FAILURES_KEPT, FamilyCount, tally
from httpmark.harness.model.cases import Level
from httpmark.harness.model.verdicts import Tally, Verdict, Word

_KINDS = st.lists(
    st.tuples(st.sampled_from([Level.MUST, Level.SHOULD]), st.sampled_from(list(Word))), max_size=60
)


def verdicts(kinds: list[tuple[Level, Word]]) -> list[Verdict]:
    return [
        Verdict(f"c-{at:03}", word, "REJ", "200; closed", None, level)
        for at, (level, word) in enumerate(kinds)
    ]


def in_two(found: list[Verdict], at: int) -> Tally:
    first, second = FamilyCount(), FamilyCount()
    for one in found[:at]:
        second.add(one)
    for one in found[at:]:
        first.add(one)
    first.merge(second, lambda case: int(case.removeprefix("c-")))
    return first.tally()


@hypothesis.given(_KINDS, st.integers(0, 60))
def test_a_family_counted_in_two_parts_is_the_same_family(
    kinds: list[tuple[Level, Word]], at: int
) -> None:
    found = verdicts(kinds)
    apart, whole = in_two(found, at), tally(found)
    assert msgspec.json.encode(apart) == msgspec.json.encode(whole)


@hypothesis.given(_KINDS)
def test_a_failure_that_binds_is_kept_if_there_is_one(kinds: list[tuple[Level, Word]]) -> None:
    found = verdicts(kinds)
    binding = [one for one in found if one.word is Word.FAIL and one.level is Level.MUST]
    kept = tally(found).failures
    assert kept[: len(binding)] == tuple(binding[:FAILURES_KEPT])
    assert len(kept) <= FAILURES_KEPT
