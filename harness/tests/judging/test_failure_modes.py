"""Failure modes: told apart, told the same from run to run, and excused as they are listed."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import pytest

from httpmark.harness.judging import failure_modes, family_tally
from httpmark.harness.model.cases import Level
from httpmark.harness.model.verdicts import Verdict, Word


@pytest.mark.parametrize(
    ("actual", "mode"),
    [
        ("200; closed (200 is not REJ)", "200; closed"),
        ("200, 200; the next request gets 200", "200, 200; the next request gets 200"),
        ("200, 200; the next request is answered", "200; the next request gets 200"),
        ("200, 400, 200; the next request is answered wrongly (x)",
         "200; the next request wrongly gets 400, 200"),
        ("431; reset", "431; closed"),
        ("closed without a byte (0 answers instead of 2)", "closed without a byte"),
        ("bytes that are no HTTP response (not a status line (RFC 9112 4; 5)); left open (x)",
         "bytes that are no HTTP response; left open"),
        ("200, 200, 200, 200, 2 more; left open", "200, 200, 200, 200, N more; left open"),
        ("sent after 64.0 MiB, memory grew by 376.5 MiB: all of it was taken",
         "sent after N MiB, memory grew by N MiB: all of it was taken"),
        ("says close, and is still open after 1.5 s", "says close, and is still open after N s"),
        ("300 descriptors before 100 resets, 412 after them; died",
         "N descriptors before N resets, 412 after them; died"),
        ("no Date on 400", "no Date on 400"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_failure_mode_is_what_stays_the_same(actual: str, mode: str) -> None:
    assert failure_modes.failure_mode(actual) == mode


@hypothesis.given(
    st.lists(st.sampled_from(["200", "2 more", "64.0 MiB", "silence", "closed", "reset"])),
    st.sampled_from(["", " (0 answers instead of 1)", " (RFC 9112 4; (x))"]),
    st.lists(st.sampled_from(["left open", "reset", "the next request is answered"]), max_size=2),
)
def test_a_failure_mode_is_its_own(heads: list[str], why: str, ends: list[str]) -> None:
    actual = "; ".join((", ".join(heads) + why, *ends))
    once = failure_modes.failure_mode(actual)
    assert failure_modes.failure_mode(once) == once
    assert failure_modes.covers(once, actual, family=False)


@pytest.mark.parametrize(
    ("listed", "found", "family", "covered"),
    [
        ("any", "200; closed", False, True),
        ("200", "200; closed", False, True),  # as files of before list it
        ("200; closed", "200; closed", False, True),
        ("200; closed", "200; the next request is answered", False, False),
        ("200", "200, 200; closed", False, False),
        ("fail", "200; closed", False, False),
        ("fail", "200; closed", True, True),
        ("200; closed | 404", "200; closed", True, True),
        ("200; closed | 404", "200; closed | 404; closed", True, True),
        ("200; closed", "200; closed | silence until the deadline", True, False),
        ("accepted", "hung", True, False),
        ("64.0 MiB were taken", "N MiB were taken", False, True),
        # Words of earlier versions, as baselines list them.
        ("closed without an octet", "closed without a byte", False, True),
        ("closed without an octet | reset without an octet", "reset without a byte", True, True),
        ("octets that are no HTTP response; left open",
         "bytes that are no HTTP response (x); left open", False, True),
        ("surplus octets", "surplus bytes", True, True),
        ("only 12 octets were sent", "only 7 bytes were sent", True, True),
        ("octets behind the 101: the content was taken for the new protocol",
         "bytes after the 101: the content was taken for the new protocol", False, True),
        ("left open, where one write drew a close", "left open, where one write got a close",
         False, True),
        ("closed without an octet", "reset without a byte", False, False),
    ],
)  # fmt: skip
def test_only_what_is_listed_is_covered(
    listed: str, found: str, family: bool, covered: bool
) -> None:
    assert failure_modes.covers(listed, found, family=family) is covered


def test_a_family_counts_its_failure_modes() -> None:
    actuals = ["200; closed (x)"] * 3 + ["silence until the deadline"]
    verdicts = [Verdict(f"c-{at}", Word.FAIL, "REJ", one) for at, one in enumerate(actuals)]
    verdicts.append(Verdict("c-9", Word.PASS, "REJ", "400; closed", None, Level.MUST))
    found = family_tally.tally(verdicts).failure_modes
    assert found == {"200; closed": 3, "silence until the deadline": 1}
    assert failure_modes.as_outcome(found) == "200; closed | silence until the deadline"
    assert failure_modes.as_outcome({}) == "fail"


def test_many_ways_are_few_words() -> None:
    found = failure_modes.most_frequent({f"mode {chr(97 + at)}": at + 1 for at in range(12)})
    assert len(found) == failure_modes.KEPT + 1
    assert sum(found.values()) == sum(range(1, 13))
    assert found[failure_modes.OTHER] == 1 + 2 + 3 + 4
