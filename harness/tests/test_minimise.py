"""The minimiser: what is left still holds, and no octet of it can go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from httpmark.harness import minimise


@given(st.binary(min_size=1, max_size=60), st.binary(min_size=1, max_size=4), st.integers(0, 60))
def test_what_is_left_holds_and_nothing_of_it_can_go(
    rest: bytes, needle: bytes, place: int
) -> None:
    octets = rest[:place] + needle + rest[place:]
    wanted = set(needle)
    left = minimise.smallest(octets, lambda tried: wanted <= set(tried))
    assert wanted <= set(left)
    assert len(left) == len(wanted)


def test_questions_are_bounded() -> None:
    asked = 0

    def holds(tried: bytes) -> bool:
        nonlocal asked
        asked += 1
        return False

    assert minimise.smallest(bytes(1000), holds, asks_max=10) == bytes(1000)
    assert asked == 10


def test_one_octet_is_as_small_as_it_gets() -> None:
    assert minimise.smallest(b"a", lambda tried: True) == b"a"
    assert len(minimise.smallest(b"abcdef", lambda tried: True)) == 1
