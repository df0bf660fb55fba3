"""Every expectation there is, in plain English: no word of the language is left as it was."""

from __future__ import annotations

import re

import pytest

from httpmark.harness.catalogue import expectation_words, loading, lookup, vocabulary
from httpmark.harness.catalogue.expectation import ENDS, WORDS
from httpmark.harness.model.errors import HarnessError

KNOWN = loading.load()
RAW = re.compile(
    rf"\b(?:{'|'.join(sorted(WORDS))})\b(?!\")|\b(?:talk|views)\.|\w\*\d|; (?!tolerated: )"
    r"|\b(?:no beyond|body lacks)|[?=~] \{|\{[a-z]|\d,\d"
)


def texts() -> set[str]:
    """All alternatives of the scenarios."""
    found: set[str] = set()
    for rule in KNOWN.rules.values():
        for one in (rule, *rule.classes):
            for name in ("passes", "allows", "noteds", "hardened"):
                found |= set(getattr(one, name, None) or ())
    return found


@pytest.mark.parametrize("text", sorted(texts()))
def test_no_word_is_left_raw(text: str) -> None:
    said = expectation_words.wanted(text)
    assert said != text
    plain = re.sub(r'"[^"]*"*', "", said)
    assert RAW.search(plain) is None, said
    assert said == " ".join(said.split())


def test_every_word_has_its_phrase() -> None:
    assert set(expectation_words._WORDS) >= WORDS
    assert set(expectation_words._ENDS) == ENDS


def test_what_a_verdict_asks_for_is_a_sentence() -> None:
    """As the judge joins it: alternatives, what is tolerated, and the ruleset."""
    wrong: dict[str, str] = {}
    for family in KNOWN.families.values():
        if family.generated or family.runner is not None:
            continue
        try:
            _, planned = lookup.find(family.id)
        except HarnessError:
            continue
        expected = planned.expectation
        if expected is None:
            continue
        text = expected.text
        if expected.allowed_text:
            text += f"; allowed: {expected.allowed_text}"
        said = expectation_words.wanted(f"{text} (hardened)")
        left = said.removesuffix(" (ruleset hardened)")
        if left in (said, text) or "allowed:" in said or "(noted)" in said:
            wrong[family.id] = said
    assert wrong == {}


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ("R400C", "a 400 and the connection closed"),
        ("ACC", "the request accepted (a 2xx)"),
        ("REJ", "the request refused (a 4xx, 501, 505, or only a close)"),
        ("2xx,401,402,403,501", "a 2xx, 401 to 403 or 501"),
        ("2xx,301,401,403,405,407,409,501", "a 2xx, 301, 401, 403, 405, ... or 501"),
        ("ACC*1000; prompt", "1000 requests accepted (a 2xx each), none of them delayed"),
        (
            "ACC; content hello; no field X; close; allowed: 411 (noted) or 413",
            'the request accepted (a 2xx), understood with the content "hello" and without a '
            "field X, and the connection closed; tolerated: a 411 or a 413",
        ),
    ],
)
def test_it_reads_well(expected: str, said: str) -> None:
    assert expectation_words.wanted(expected) == said


def test_what_is_no_expectation_is_left_as_it_is() -> None:
    texts = (*vocabulary.PROGRAMS.values(), "a well-formed 2xx", "", "no Date on 200")
    assert [text for text in texts if expectation_words.wanted(text) != text] == []


@pytest.mark.parametrize(
    ("actual", "said"),
    [
        ("404; closed (404 is not ACC)", "404, and the connection closed"),
        ("200; the next request is answered (200 is not R400C)",
         "200; the next request is answered"),
        ("200, 400; left open", "200, 400, and the connection left open"),
        ("no answer (silence)", "no answer (silence)"),
        ("fail: 501; closed, warn: 200; reset",
         "fail: 501, and the connection closed, warn: 200, and the connection reset"),
    ],
)  # fmt: skip
def test_what_came_does_not_say_again_what_was_wanted(actual: str, said: str) -> None:
    assert expectation_words.came(actual) == said


@pytest.mark.parametrize(
    ("actual", "own", "after"),
    [
        ("200", "200", ""),
        ("400; closed (400 is not ACC)", "400, and the connection closed", ""),
        ("200; the next request gets 200 (200 is not REJ)", "200", "the next request gets 200"),
        (
            "200, 200; the next request is not answered (2 answers instead of 1)",
            "200, 200 (2 answers instead of 1)",
            "the next request is not answered",
        ),
        (
            "200; the next request is answered wrongly (no HTTP response: not a line (RFC 9112 4))",
            "200",
            "the next request is answered wrongly (no HTTP response: not a line (RFC 9112 4))",
        ),
    ],
)
def test_the_answer_to_the_next_request_is_told_apart(actual: str, own: str, after: str) -> None:
    assert expectation_words.came_apart(actual) == (own, after)
