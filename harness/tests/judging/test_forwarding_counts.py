"""Only what repeats counts, and of what many cases break some are asked again."""

from __future__ import annotations

from collections.abc import Sequence

from httpmark.harness.judging import forwarding_counts
from httpmark.harness.judging.forwarding_counts import AGAIN_MAX
from httpmark.harness.model.forwarding import FrontEnd, Heard, Passage, Remark

KNOWN = FrontEnd(name="a", title="A")


def heard(
    case: str, *rules: str, repeated: Sequence[str] | None = None, suite: str = "rfc"
) -> Heard:
    passage = Passage(
        case=case, family=case.partition("/")[0], suite=suite, sent=b"GET", received=b"",
        upstreams=(),
    )  # fmt: skip
    return Heard(
        passage=passage, remarks=tuple(Remark(rule, "what", b"shown") for rule in rules),
        asked_again=repeated is not None, repeated=frozenset(repeated or ()),
    )  # fmt: skip


def counts(*cases: Heard) -> dict[str, tuple[str, ...]]:
    found = forwarding_counts.counted(KNOWN, cases)
    return {one.rule: one.cases for one in found.rules}


def test_what_does_not_repeat_does_not_count() -> None:
    once, twice = heard("a", "via", repeated=()), heard("b", "via", repeated=("via",))
    assert counts(once) == {}
    assert counts(once, twice) == {"via": ("b",)}
    assert forwarding_counts.counted(KNOWN, [once, twice]).not_repeated == 1


def test_what_was_not_asked_again_counts_only_where_all_that_was_repeated() -> None:
    rest, twice = heard("c", "via"), heard("b", "via", repeated=("via",))
    once = heard("a", "via", repeated=())
    assert counts(rest) == {}
    assert counts(twice, rest) == {"via": ("b", "c")}
    assert counts(once, twice, rest) == {"via": ("b",)}


def test_a_note_is_not_asked_again_and_counts() -> None:
    note = heard("a", "repaired")
    assert forwarding_counts.again([note]) == []
    assert counts(note) == {"repaired": ("a",)}


def test_of_a_rule_that_many_break_some_are_asked_again_and_all_of_a_rarer_one() -> None:
    cases = [heard(f"f/{number}", "via") for number in range(AGAIN_MAX + 5)]
    cases.append(heard("z", "via", "nul"))
    assert forwarding_counts.again(cases) == [f"f/{n}" for n in range(AGAIN_MAX)] + ["z"]


def test_the_example_is_a_message_for_proxies_that_was_asked_again() -> None:
    cases = [
        heard("a", "via", repeated=("via",)),
        heard("b", "via", repeated=("via",), suite="forwarding"),
        heard("c", "via", suite="forwarding"),
    ]
    (count,) = forwarding_counts.counted(KNOWN, cases).rules
    assert (count.example, count.asked_again, len(count.cases)) == ("b", 2, 3)


def test_cases_of_a_family_are_one_message() -> None:
    cases = [heard("f/1"), heard("f/2", "nul", repeated=("nul",)), heard("g")]
    first, second = forwarding_counts.counted(KNOWN, cases).messages
    assert (first.family, first.asked, first.forwarded, first.rules) == ("f", 2, 0, {"nul": 1})
    assert (second.family, second.rules) == ("g", {})
