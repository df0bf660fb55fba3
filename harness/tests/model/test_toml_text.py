"""TOML: whatever is wrong with a text is one error, in one line, soon and with little memory."""

from __future__ import annotations

from typing import Any

import pytest

from httpmark.harness.model import toml_text
from httpmark.harness.model.toml_text import KEY_PARTS_MAX, NotToml


def test_tables_are_what_the_text_says() -> None:
    text = 'a = 1\n[b."c d"]\n\'e\' = [1.5, "x.y.z"]\n'
    assert toml_text.tables(text) == {"a": 1, "b": {"c d": {"e": [1.5, "x.y.z"]}}}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a", "after a key"),
        ("a = " + "[" * 5000, "nested too deeply"),
        ("a = " + "{a = " * 5000, "nested too deeply"),
        ("a = " + "1" * 5000, "more than 4300 digits"),
        ("a = 2024-02-31", "Invalid date"),
        ("a" + ".a" * 30_000 + " = 1", "more than 100 parts"),
        ("[ a" + ' . "a b"' * 30_000 + " ]", "more than 100 parts"),
        ("x = { 'a'" + ".b" * 30_000 + " = 1 }", "more than 100 parts"),
    ],
)
def test_every_mistake_is_one_line(text: str, why: str) -> None:
    with pytest.raises(NotToml, match=why) as caught:
        toml_text.tables(text)
    assert "\n" not in str(caught.value)


def test_a_key_may_have_as_many_parts_as_are_told() -> None:
    found: Any = toml_text.tables("a" + ".a" * (KEY_PARTS_MAX - 1) + " = 1")
    for _ in range(KEY_PARTS_MAX):
        found = found["a"]
    assert found == 1


def test_long_words_without_dots_are_read_at_once() -> None:
    """By a pattern that tries from each character, this takes minutes."""
    text = f'a = "{"x" * 300_000}"\n# {"y " * 100_000}\n'
    assert len(toml_text.tables(text)["a"]) == 300_000


def test_a_key_is_shown_in_one_line() -> None:
    assert toml_text.shown_key("max-bytes_1") == "max-bytes_1"
    assert toml_text.shown_key("a\nb") == "'a\\nb'"
    assert toml_text.shown_key("") == "''"
