"""Plain text that fits, and says where it was cut."""

from __future__ import annotations

from httpmark.harness.report import text_layout


def test_what_does_not_fit_is_cut_and_shown_to_be() -> None:
    table = text_layout.Table(30, ("figure", 8), ("word", -6))
    assert table.head("server") == "server           figure word"
    line = table.line("a-name-that-is-too-long", ["123,456,789", "generator"])
    assert line == "a-name-that-i~ 123,456~ gener~"
    assert table.line("a", ["1", ""]) == "a" + " " * 21 + "1"


def test_words_wrap_and_go_further_in() -> None:
    assert text_layout.wrapped("one two three", 9) == ["  one two", "    three"]
    assert text_layout.wrapped("", 9) == [""]


def test_a_reason_is_said_once() -> None:
    notes = [("a", "late"), ("b", "died"), ("c", "late")]
    assert text_layout.grouped(notes, 80) == ["  a, c: late", "  b: died"]
