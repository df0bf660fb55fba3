"""What changed between two runs: only what both decided is newly broken or mended."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from httpmark.harness.gate.crashes import NAMELESS
from httpmark.harness.gate.findings import Status
from httpmark.harness.gate.run_changes import NOT_ASKED, Kind, kind_of
from httpmark.harness.model.cases import Level
from httpmark.harness.model.crashes import Blame, Crash, CrashKind, crash_id
from httpmark.harness.model.verdicts import Deliveries, Disagreement, Word
from httpmark.harness.tests.shared.made_checks import (
    CASE,
    FAMILY,
    OTHER,
    changed,
    check,
    of_words,
    suite,
)


@pytest.mark.parametrize(
    ("base", "head", "kind"),
    [
        (Word.PASS, Word.FAIL, Kind.NEWLY_BROKEN),
        (Word.WARN, Word.FAIL, Kind.NEWLY_BROKEN),
        (Word.FAIL, Word.PASS, Kind.NEWLY_MENDED),
        (Word.FAIL, Word.WARN, Kind.NEWLY_MENDED),
        (Word.FAIL, Word.FAIL, Kind.STILL_FAILING),
        (Word.PASS, Word.WARN, Kind.NEWLY_WARNED),
        (Word.UNSTABLE, Word.FAIL, Kind.UNDECIDED),
        (Word.VOID, Word.FAIL, Kind.UNDECIDED),
        (Word.FAIL, Word.VOID, Kind.UNDECIDED),
        (Word.PASS, Word.UNSTABLE, Kind.UNDECIDED),
        (Word.NOT_APPLICABLE, Word.FAIL, Kind.FIRST_ASKED),
        (None, Word.FAIL, Kind.FIRST_ASKED),
        (Word.FAIL, None, Kind.NO_LONGER_ASKED),
        (Word.PASS, Word.NOT_APPLICABLE, Kind.NO_LONGER_ASKED),
        (Word.PASS, Word.PASS, None),
        (Word.WARN, Word.PASS, None),
        (Word.VOID, Word.PASS, None),
        (Word.VOID, Word.VOID, None),
        (None, Word.PASS, None),
        (Word.NOT_APPLICABLE, None, None),
    ],
)
def test_what_became_of_a_case(base: Word | None, head: Word | None, kind: Kind | None) -> None:
    found = of_words(base, head)
    assert [change.kind for change in found.changes] == ([] if kind is None else [kind])
    assert found.is_broken == (kind is Kind.NEWLY_BROKEN)
    assert found.is_undecided == (kind is Kind.UNDECIDED)


def test_only_what_both_runs_decided_is_newly_broken_or_newly_mended() -> None:
    decided = {Status.PASSED.value, Status.WARNED.value, Status.FAILED.value,
               Status.UNUSABLE.value}  # fmt: skip
    words = [*(status.value for status in Status if status is not Status.EXPECTED), NOT_ASKED]
    for base, head in itertools.product(words, words):
        kind = kind_of(base, head)
        if kind in (Kind.NEWLY_BROKEN, Kind.NEWLY_MENDED, Kind.STILL_FAILING):
            assert {base, head} <= decided, (base, head)
        if head in ("failed", "unusable"):
            assert kind is not None, f"{base}: a failure of head is never passed over"


def test_nothing_is_told_of_a_run_and_itself() -> None:
    cases = {f"c-{word.value}": word for word in Word}
    run = check(suite(cases, {FAMILY: {Word.PASS: 3, Word.FAIL: 2}}))
    found = changed(run, run)
    assert {change.kind for change in found.changes} == {Kind.STILL_FAILING}
    assert not found.is_broken
    assert not found.is_undecided


def test_a_family_that_fails_more_often_is_newly_broken() -> None:
    def family(failed: int, passed: int, void: int = 0) -> object:
        words = {Word.FAIL: failed, Word.PASS: passed, Word.VOID: void}
        return check(suite(families={FAMILY: words}))

    found = changed(family(2, 98), family(3, 97))  # type: ignore[arg-type]
    (change,) = found.of(Kind.NEWLY_BROKEN)
    assert change.message.startswith("3 requests fail, 2 before; ")
    for base, head in (
        (family(3, 97), family(2, 98)),
        (family(2, 98), family(2, 98)),
        (family(2, 97, void=1), family(3, 97)),  # the void one may be the one that fails
        (family(2, 98), family(30, 970)),  # other requests were asked
    ):
        assert {one.kind for one in changed(base, head).changes} == {Kind.STILL_FAILING}  # type: ignore[arg-type]


def test_a_server_that_dies_is_newly_broken_and_one_that_is_not_there_is_undecided() -> None:
    good = check(suite({CASE: Word.PASS}))
    died = check(suite({CASE: Word.VOID}), died="killed by signal 11")
    found = changed(good, died)
    (change,) = found.of(Kind.NEWLY_BROKEN)
    assert change.id == "server"
    assert "killed by signal 11" in change.message
    assert changed(died, died).of(Kind.STILL_FAILING)[0].id == "server"
    assert [one.id for one in changed(died, good).of(Kind.NEWLY_MENDED)] == ["server"]
    absent = changed(good, check(unavailable="no cargo"))
    assert absent.is_undecided
    assert not absent.is_broken


def test_a_crash_is_newly_broken_where_the_server_lived_through_the_same_before() -> None:
    crash = Crash(
        kind=CrashKind.DIED, how="killed by SIGABRT", blame=Blame.ALONE, cases=(CASE,), requests=1,
        suite="rfc", family=CASE,
    )  # fmt: skip
    nameless = msgspec.structs.replace(crash, blame=Blame.NOT_AGAIN, suite="", family="")
    alive = check(suite({CASE: Word.PASS}))
    void = check(suite({CASE: Word.VOID}))
    unasked = check(suite({OTHER: Word.PASS}))
    for one, id in ((crash, crash_id(CASE)), (nameless, NAMELESS)):
        dead = check(suite({CASE: Word.PASS}), crashes=(one,))
        assert [found.id for found in changed(alive, dead).of(Kind.NEWLY_BROKEN)] == [id]
        assert [found.id for found in changed(dead, alive).of(Kind.NEWLY_MENDED)] == [id]
        assert [found.id for found in changed(dead, dead).of(Kind.STILL_FAILING)] == [id]
    dead = check(suite({CASE: Word.PASS}), crashes=(crash,))
    assert crash_id(CASE) in {one.id for one in changed(void, dead).of(Kind.UNDECIDED)}
    assert crash_id(CASE) in {one.id for one in changed(unasked, dead).of(Kind.FIRST_ASKED)}


def test_an_answer_that_begins_to_depend_on_the_cuts_is_newly_broken() -> None:
    divided = Disagreement(
        case=CASE, level=Level.MUST, count=3, deliveries=("two@17",), what="another answer"
    )
    good = check(suite({CASE: Word.PASS}, deliveries=Deliveries(messages=1, fired={"two": 9})))
    bad = check(
        suite(
            {CASE: Word.PASS},
            deliveries=Deliveries(messages=1, fired={"two": 9}, disagreements=(divided,)),
        )
    )
    unstable = check(
        suite(
            {CASE: Word.PASS},
            deliveries=Deliveries(messages=1, fired={"two": 9}, unstable=(CASE,)),
        )
    )
    uncut = check(suite({CASE: Word.PASS}))
    assert [one.id for one in changed(good, bad).of(Kind.NEWLY_BROKEN)] == [f"{CASE}-delivery"]
    assert [one.kind for one in changed(bad, good).changes] == [Kind.NEWLY_MENDED]
    assert [one.kind for one in changed(unstable, bad).changes] == [Kind.UNDECIDED]
    assert [one.kind for one in changed(uncut, bad).changes] == [Kind.FIRST_ASKED]
    assert [one.kind for one in changed(bad, uncut).changes] == [Kind.NO_LONGER_ASKED]
    assert not changed(good, uncut).changes


def test_the_worst_stands_first_and_the_counts_are_those_of_the_runs() -> None:
    base = check(suite({"a": Word.FAIL, "b": Word.PASS, "c": Word.FAIL, CASE: Word.PASS}))
    head = check(suite({"a": Word.PASS, "b": Word.VOID, "c": Word.FAIL, CASE: Word.FAIL}))
    found = changed(base, head)
    assert [change.kind for change in found.changes] == sorted(
        (change.kind for change in found.changes), key=list(Kind).index
    )
    assert found.changes[0].id == CASE
    assert found.headline == "1 newly broken, 1 newly mended, 1 still failing, 1 undecided"
    assert found.requirements == ((2, 4), (2, 4))


def test_a_head_that_was_interrupted_proves_nothing() -> None:
    base = check(suite({CASE: Word.PASS, OTHER: Word.PASS}))
    head = msgspec.structs.replace(check(suite({CASE: Word.PASS})), interrupted=True)
    found = changed(base, head)
    assert found.is_undecided
    assert not found.is_broken
