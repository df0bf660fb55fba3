"""The minimiser: what is left still holds, and no byte of it can go; and still shows the fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpmark.harness.firing import delta_debugging, same_fault
from httpmark.harness.http import tolerances
from httpmark.harness.http.request_reader import Broken


@given(st.binary(min_size=1, max_size=60), st.binary(min_size=1, max_size=4), st.integers(0, 60))
def test_what_is_left_holds_and_nothing_of_it_can_go(
    rest: bytes, needle: bytes, place: int
) -> None:
    octets = rest[:place] + needle + rest[place:]
    wanted = set(needle)
    left = delta_debugging.smallest(octets, lambda tried: wanted <= set(tried))
    assert wanted <= set(left)
    assert len(left) == len(wanted)


def test_questions_are_bounded() -> None:
    asked = 0

    def holds(tried: bytes) -> bool:
        nonlocal asked
        asked += 1
        return False

    assert delta_debugging.smallest(bytes(1000), holds, asked_max=10) == bytes(1000)
    assert 0 < asked <= 10


def test_one_byte_is_as_small_as_it_gets() -> None:
    assert delta_debugging.smallest(b"a", lambda tried: True) == b"a"
    assert len(delta_debugging.smallest(b"abcdef", lambda tried: True)) == 1


def test_many_pieces_go_at_once() -> None:
    lots = 0
    search = delta_debugging.Search(b"a" * 500 + b"b" + b"c" * 500)
    while search.lot:
        lots += 1
        search.told([b"b" in tried for tried in search.lot])
    assert search.octets == b"b"
    assert lots < 30, "a lot is one journey"


LENGTH = b"POST /mirror HTTP/1.1\r\nHost: h.example\r\nX-A: bcd\r\nContent-Length: +5\r\n\r\nhello"


SMUGGLED = b"GET /smuggled HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize(
    ("octets", "fewer", "same"),
    [
        (LENGTH, LENGTH.replace(b"X-A: bcd\r\n", b""), True),
        (LENGTH, LENGTH.replace(b"A: bcd", b"A: b").replace(b"hello", b"h"), True),
        (LENGTH, LENGTH.replace(b"/mirror", b"/m"), False),
        # A request that every server accepts, and one with another fault.
        (LENGTH, LENGTH.replace(b"Content-Length: +5\r\n", b""), False),
        (LENGTH, LENGTH.replace(b"+5", b"5"), False),
        (LENGTH, LENGTH.replace(b"+5", b"+"), False),
        (LENGTH, LENGTH.replace(b"X-A", b"X-"), False),
        (LENGTH, LENGTH.replace(b"Content-", b""), False),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", False),
        (LENGTH, LENGTH.replace(b"Host: h.example\r\n", b""), False),
        (LENGTH, LENGTH.replace(b"h.example", b"h"), False),
        (LENGTH, LENGTH.replace(b"POST", b"PT"), False),
        (b"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", b"GET /%z HTTP/1.1\r\nHost: h\r\n\r\n", False),
        (b"GET /%zzab HTTP/1.1\r\nHost: h\r\n\r\n", b"GET /%zza HTTP/1.1\r\nHost: h\r\n\r\n", True),
        (LENGTH.replace(b"hello", SMUGGLED), LENGTH.replace(b"hello", SMUGGLED[4:]), False),
        # A valid one stays whole.
        (
            b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 15\r\n\r\nfifteen octets.",
            b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nfifteen octets.",
            False,
        ),
        (
            b"POST / HTTP/1.1\r\nHost: h\r\nA: b\r\nContent-Length: 2\r\n\r\nab",
            b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab",
            True,
        ),
    ],
)
def test_fewer_bytes_show_the_same_fault_or_another(
    octets: bytes, fewer: bytes, same: bool
) -> None:
    assert same_fault.alike(octets)(octets)
    assert same_fault.alike(octets)(fewer) is same


def test_what_may_be_taken_for_a_valid_message_is_told_from_what_may_not() -> None:
    """A list of one length, twice, is tolerated; a list of two is not."""
    line = b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: %s\r\n\r\n"
    two, one = line % b"0, 0, 00000001", line % b"0, 0, 0"
    assert tolerances.broken(two) == tolerances.broken(one) == Broken.LENGTH
    assert not same_fault.alike(two)(one)


def test_the_grammar_asks_for_what_the_bytes_are() -> None:
    assert same_fault.asks(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").text == "PARSED"
    assert same_fault.asks(b"GET / HTTP/1.1\r\n\r\n").text == "R400"
    assert same_fault.sort(b"GET / HTTP/1.1\r\nHost: h\r\n") is None, "not ended"
    assert same_fault.sort(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n" * 2) is None, "not alone"


@given(st.lists(st.integers(0, 30), unique=True, min_size=1), st.data())
def test_of_things_in_order_those_that_are_needed_are_left(
    pieces: list[int], data: st.DataObject
) -> None:
    needed = set(data.draw(st.lists(st.sampled_from(pieces), min_size=1)))
    found = delta_debugging.fewest(
        pieces, lambda some: needed <= set(some), delta_debugging.Budget(10_000)
    )
    assert found == [piece for piece in pieces if piece in needed]


def test_a_spent_budget_leaves_what_holds() -> None:
    asked = []

    def holds(some: list[int]) -> bool:
        asked.append(some)
        return 7 in some

    found = delta_debugging.fewest(list(range(100)), holds, delta_debugging.Budget(5))
    assert len(asked) == 5
    assert 7 in found
    late = delta_debugging.Budget(5, lambda: True)
    assert delta_debugging.fewest([1, 2], lambda some: True, late) == [1, 2]
