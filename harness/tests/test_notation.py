"""The notation of scenario texts: escapes, placeholders, and what is neither."""

from __future__ import annotations

import pytest

from httpmark.harness import notation
from httpmark.harness.notation import expand

KNOWN: dict[str, notation.Value | None] = {
    "h": b"a:1",
    "S": b"GET /",
    "n": 171,
    "k": 3,
    "limit.fields": None,
}


@pytest.mark.parametrize(
    ("text", "octets"),
    [
        (r"a\r\n\t\x00\xfF", b"a\r\n\t\x00\xff"),
        (r"\foo\x4 \\", rb"\foo\x4 \\"),
        ("{h} {unknown} {}", b"a:1 {unknown} {}"),
        ("{{h}}", b"{a:1}"),
        ("{", b"{"),
        ("{hexdig}", b"0123456789ABCDEFabcdef"),
        ("{7d..80}", b"}~\x7f\x80"),
        ("{#S} {#S+15} {#S-1}", b"5 20 4"),
        ("{x#n} {X#n} {x8#n} {#n}", b"ab AB 000000ab 171"),
        ("{=n+1} {=n-k-#S} {=12}", b"172 163 12"),
        ("{3*ab}{0*x}{k*\\x00}{5-k*.}", b"ababab\x00\x00\x00.."),
        ("{3*{i},}", b"0,1,2,"),
        ("{3*{=i+9},}", b"9,10,11,"),
        ("{2*{{h}}}", b"{a:1}{a:1}"),
        ("{-1*a}", b"{-1*a}"),
        ("{ramp 4}", b"\x00\x01\x02\x03"),
    ],
)
def test_a_text_stands_for_these_octets(text: str, octets: bytes) -> None:
    assert expand(text, KNOWN) == octets


def test_a_ramp_counts_to_250_and_begins_again() -> None:
    assert list(expand("{ramp 600}", {})) == [index % 251 for index in range(600)]


@pytest.mark.parametrize(("text", "beyond"), [("{align 32*a}", 0), ("{align 32-2*a}", 30)])
def test_what_aligns_reaches_the_next_edge_with_at_least_one_octet(text: str, beyond: int) -> None:
    for before in range(70):
        made = expand("x" * before + text, {})
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
    assert expand("{case j host}", {"j": 1}) == b"HosT"
    # mod 2^13 it is 6585, 0b1100110111001; the hyphen is not counted
    bits = [6585 >> index & 1 for index in range(13)]
    letters = iter(bits)
    wanted = bytes(
        octet - 32 if octet != 0x2D and next(letters) else octet for octet in b"content-length"
    )
    assert notation.letter_case(b"content-length", 1) == wanted


def test_a_value_that_is_declared_and_lacking_is_told_by_name() -> None:
    with pytest.raises(notation.Unknown) as caught:
        expand("{limit.fields}", KNOWN)
    assert caught.value.name == "limit.fields"
    with pytest.raises(notation.Unknown):
        expand("{=limit.fields+1}", KNOWN)


def test_a_character_beyond_the_octets_is_refused() -> None:
    with pytest.raises(ValueError, match="latin-1"):
        expand("\u20ac", {})


def test_a_text_that_grows_beyond_measure_is_refused() -> None:
    with pytest.raises(ValueError, match="128 MiB"):
        expand("{200000000*a}", {})
