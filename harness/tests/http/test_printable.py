"""Bytes and text made safe: nothing is lost, and nothing acts where it is shown."""

from __future__ import annotations

import html
import json
import re
import string
import tomllib
import unicodedata
import xml.etree.ElementTree as ElementTree

import hypothesis
import hypothesis.strategies as st

from httpmark.harness.catalogue import notation
from httpmark.harness.http import printable

# What acts somewhere: terminal escapes, markup, ends of lines and blocks, what no file can hold.
HOSTILE = "\0\x1b[31m\x7f\x85\r\n\t\u202e\u2028\ud800\ufffe<b>&`*_[x](http://evil)|~#1$@all\\\"'{}"


@hypothesis.given(st.binary(max_size=300))
def test_wire_shows_every_byte_and_no_markup_but_its_own(sent: bytes) -> None:
    drawn = str(printable.page_bytes(sent, limit=300))
    assert set(re.findall(r"<[^>]*>", drawn)) <= {"<b>", "</b>"}
    assert drawn.count("<b>") == drawn.count("</b>")
    text = html.unescape(re.sub(r"</?b>", "", drawn).replace("\n", "\\e"))
    assert all(0x20 <= ord(character) < 0x7F for character in text)
    escapes = {"e": b"\r\n", "r": b"\r", "n": b"\n", "t": b"\t", "\\": b"\\"}
    back, at = b"", 0
    while at < len(text):
        if text[at] != "\\":
            back, at = back + text[at].encode(), at + 1
        elif text[at + 1] == "x":
            back, at = back + bytes.fromhex(text[at + 2 : at + 4]), at + 4
        else:
            back, at = back + escapes[text[at + 1]], at + 2
    assert back == sent


def test_a_long_answer_is_cut_and_says_so() -> None:
    assert printable.page_bytes(b"ab" * 1000).endswith("\n… 1,800 more bytes")


@hypothesis.given(st.binary(max_size=9), st.integers(512, 70_000), st.binary(max_size=9))
def test_a_long_run_of_one_byte_is_counted(before: bytes, number: int, after: bytes) -> None:
    hypothesis.assume(not before.endswith(b"a") and not after.startswith(b"a"))
    drawn = printable.page_bytes(before + b"a" * number + after)
    begin, end = map(str, (printable.page_bytes(before), printable.page_bytes(after)))
    assert drawn == begin + "a" * 64 + f"<b>… {number - 64:,} more of it …</b>" + end
    assert f"{number:,} more bytes" in printable.page_bytes(b"a" * number, limit=0)


def test_page_text_hides_no_character() -> None:
    shown = printable.page_text(HOSTILE)
    assert all(character.isprintable() or character in "\n\t" for character in shown)
    assert r"\u202e" in shown
    assert r"\ud800" in shown
    assert printable.page_text("é ≥ 3") == "é ≥ 3"


@hypothesis.given(st.text("<>&/script! -'\"", max_size=60))
def test_json_cannot_end_its_script_block(text: str) -> None:
    shown = str(printable.page_json(json.dumps(text)))
    assert not set(shown) & set("<>&")
    assert json.loads(shown) == text


@hypothesis.given(st.binary(max_size=300))
def test_escaped_bytes_can_be_read_back(sent: bytes) -> None:
    shown = printable.escaped(sent)
    assert shown.isascii()
    assert not shown or shown.isprintable()
    assert notation.unescape(shown) == sent


@hypothesis.given(st.binary(max_size=100) | st.text("{a}'\\x2", max_size=20).map(str.encode))
def test_escaped_bytes_are_safe_in_a_literal_string_of_a_scenario_file(sent: bytes) -> None:
    written = printable.escaped(sent, also=b"'{}")
    text = tomllib.loads(f"send = '{written}'")["send"]
    assert notation.expand(text, {"a": 1, "h": b"no"}) == sent


def test_escaped_lines_are_cut_and_say_so() -> None:
    assert printable.escaped_lines(b"a\r\nb\r\n\r\n") == "a\\r\\n\nb\\r\\n\n\\r\\n"
    assert printable.escaped_lines(b"a" * 3000).endswith("\n... and 952 bytes more")


def test_a_terminal_line_is_ascii_on_one_line() -> None:
    told = printable.terminal_line("≥ 3 µs × 2\n\x1b[31m\u202e")
    assert told.startswith(">= 3 us x 2 ")
    told = printable.terminal_line(HOSTILE)
    assert set(told) <= set(string.printable) - set("\n\r\t\x0b\x0c\x1b")


@hypothesis.given(st.text() | st.text(HOSTILE))
def test_markdown_acts_nowhere(text: str) -> None:
    shown = printable.markdown(text)
    assert shown.isprintable()
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]|~$<>@]", shown)
    plain = html.unescape(re.sub(r"\\(.)", r"\1", shown))
    assert plain == printable.one_line(text)


@hypothesis.given(st.text(st.characters(exclude_categories=())))
def test_a_terminal_obeys_nothing_in_a_text(text: str) -> None:
    shown = printable.terminal_text(text)
    obeyed = {"Cc", "Zl", "Zp", "Cs"}
    unseen = [c for c in shown.replace("\r\n", "\n") if unicodedata.category(c) in obeyed]
    assert set(unseen) <= {"\n", "\t"}
    assert not set(shown) & set("\u202e\u2066\u200b\ufeff\x9b\x7f")
    assert printable.terminal_text(shown) == shown
    # A text of JSON stays the same value.
    assert json.loads(printable.terminal_text(json.dumps(text))) == text
    assert json.loads(printable.terminal_text(json.dumps(text, ensure_ascii=False))) == text


def test_markdown_code_cannot_end_its_span_or_block() -> None:
    assert not set(printable.markdown_code(HOSTILE)) & set("`\n\r\x1b")
    block = printable.markdown_block("a\n```\n````b\x1b", characters_max=100)
    assert block == "`````text\na\n```\n````b \n`````"
    assert printable.markdown_block("x" * 90, characters_max=10) == f"```text\n{'x' * 10}\n```"


@hypothesis.given(st.text(st.characters(exclude_categories=())))
def test_xml_takes_any_text(text: str) -> None:
    element = ElementTree.Element("a")
    element.text = printable.xml(text)
    read = ElementTree.fromstring(ElementTree.tostring(element, "unicode"))
    assert (read.text or "") == printable.xml(text).replace("\r\n", "\n").replace("\r", "\n")


def test_one_line_is_one_line() -> None:
    assert printable.one_line("a\r\n\u2028\x1b[b é") == "a    [b é"


@hypothesis.given(st.text(st.characters(exclude_categories=())))
def test_valid_unicode_can_be_written_and_loses_nothing_else(text: str) -> None:
    shown = printable.valid_unicode(text)
    shown.encode("utf-8")
    assert re.sub(r"\\ud[89a-f][0-9a-f]{2}", "", shown) == re.sub(
        r"\\ud[89a-f][0-9a-f]{2}", "", re.sub("[\ud800-\udfff]", "", text)
    )
