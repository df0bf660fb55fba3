"""The glossary: one source for ``explain`` and for the document, and it explains itself."""

from __future__ import annotations

import re
from pathlib import Path

from httpmark.harness.report import glossary

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "glossary.md"


def test_the_document_is_what_the_source_gives() -> None:
    assert DOCUMENT.read_text("utf-8") == glossary.markdown(), (
        'write it anew: python -c "from httpmark.harness.report import glossary as g; '
        "print(g.markdown(), end='')\" > docs/glossary.md"
    )


def test_every_meaning_is_whole_sentences() -> None:
    wrong = [
        word
        for word, meaning in glossary.WORDS.items()
        if not re.fullmatch(r"[A-Z0-9/(].*[.?!]", meaning) or "octet" in meaning
    ]
    assert not wrong


def test_no_word_stands_twice_and_every_other_form_leads_to_a_word() -> None:
    words = [word for group in glossary.GROUPS for word in group.words]
    assert len(words) == len(set(words))
    assert set(glossary.SAME.values()) <= set(words)
    assert not set(glossary.SAME) & set(words)


def test_no_cell_of_the_document_breaks_its_table() -> None:
    for line in glossary.markdown().splitlines():
        if line.startswith("|"):
            assert line.count("|") == 3, line
