"""The notation of scenarios: escapes, placeholders, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpmark.harness.catalogue import notation
from httpmark.harness.http import grammar

VALUES: dict[str, notation.Value | None] = {
    "h": b"a:1", "n": 3, "S": b"GET /\r\n", "limit.fields": None, "k": 0, "m": 171
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "octets"),
    [
        (r"a\r\n\t\x00\xfF", b"a\r\n\t\x00\xff"),
        (r"a\b\q\x4", rb"a\b\q\x4"),
        ("Host: {h}", b"Host: a:1"),
        ("{x} {} {a b} {", b"{x} {} {a b} {"),
        ("{h", b"{h"),
        (r"{\x41{h}}", b"{Aa:1}"),
        ("{#S} {#S+15} {#S-1} {x#S+9}", b"7 22 6 10"),
        ("{=n+1} {=12-n} {=q+1}", b"4 9 {=q+1}"),
        ("{3*ab}{0*x}{n*-}", b"ababab---"),
        (r"{2*\r\n b}", b"\r\n b\r\n b"),
        ("{=n-#h-k}", b"0"),
        ("{x#m} {X#m} {x8#m} {#m}", b"ab AB 000000ab 171"),
        ("{3*{=i+9},}", b"9,10,11,"),
        ("{3*X-{i}: a;}", b"X-0: a;X-1: a;X-2: a;"),
        ("{2*{2*x}y}", b"xxyxxy"),
        ("{4-n*a}{n-3*a}|", b"a|"),
        ("{21..23}", b'!"#'),
        ("{ramp n}{ramp 252}", bytes(range(3)) + bytes(range(251)) + b"\0"),
        ("{tchar}", bytes(sorted(grammar.TCHAR))),
    ],
)
def test_a_text_stands_for_these_bytes(text: str, octets: bytes) -> None:
    assert notation.expand(text, VALUES) == octets


@pytest.mark.parametrize("text", ["{limit.fields}", "{#limit.fields}", "{3*{limit.fields}}"])
def test_a_value_that_is_declared_and_not_there_is_said(text: str) -> None:
    with pytest.raises(notation.Unknown, match=r"limit\.fields"):
        notation.expand(text, VALUES)


@pytest.mark.parametrize(("text", "beyond"), [("{align 32*a}", 0), ("{align 32-2*a}", 30)])
def test_what_aligns_reaches_the_next_edge_with_at_least_one_byte(text: str, beyond: int) -> None:
    for before in range(70):
        made = notation.expand("x" * before + text, {})
        assert len(made) % 32 == beyond
        assert 1 <= len(made) - before <= 32
        assert made[before:].strip(b"a") == b""


@pytest.mark.parametrize(
    ("word", "patterns"),
    [(b"host", 16), (b"expect", 64), (b"content-length", 64), (b"chunked", 64)],
)
def test_no_two_patterns_of_letters_are_alike(word: bytes, patterns: int) -> None:
    made = [notation.letter_case(word, number) for number in range(patterns)]
    assert made[0] == word
    assert len(set(made)) == patterns
    assert {one.lower() for one in made} == {word}


def test_a_pattern_of_letters_is_that_of_the_catalogue() -> None:
    # 2654435769 mod 2^4 is 9: the bits 0 and 3, so the first and the last of four letters
    assert notation.expand("{case j host}", {"j": 1}) == b"HosT"
    # mod 2^13 it is 0x19B9, from the lowest bit on 1001110110011; the hyphen is no letter
    assert notation.expand("{case j content-length}", {"j": 1}) == b"ConTENt-LEngTH"


def test_a_repetition_is_bounded() -> None:
    with pytest.raises(ValueError, match="128 MiB"):
        notation.expand("{999999999*ab}", {})


@given(st.binary())
def test_any_bytes_can_be_written(octets: bytes) -> None:
    text = "".join(f"\\x{octet:02x}" for octet in octets)
    assert notation.expand(text, VALUES) == octets == notation.unescape(text)


@given(st.text(st.characters(max_codepoint=0x7F, exclude_characters="{}\\")))
def test_a_text_without_braces_and_backslashes_is_itself(text: str) -> None:
    assert notation.expand(text, VALUES) == text.encode()
