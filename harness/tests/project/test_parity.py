"""docs/parity.md, what Kourier, ring and Lithium offer, against the tests that it names."""

from __future__ import annotations

import re
from pathlib import Path

from httpmark.harness.tests.shared.repository import ROOT, tracked

PAGE = ROOT / "docs" / "parity.md"
FILES = sorted(Path(__file__).parent.glob("test_*.py"))
CPP_TEST = re.compile(r"^TEST(?:_P|_F)?\((\w+),\s*(\w+)\)", re.MULTILINE)


def rows() -> list[list[str]]:
    """The cells of each row of the page's tables, without their heads."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[-1] not in ("test",) and set(row[0]) != {"-"}]


def python_tests(name: str) -> set[str]:
    """Those of this folder whose names are such."""
    texts = [path.read_text("utf-8") for path in FILES]
    return {found for text in texts for found in re.findall(rf"^def ({name})", text, re.M)}


def named_tests() -> list[str]:
    return [name for row in rows() for name in re.findall(r"`([\w.]+)`", row[-1])]


def test_each_row_of_the_page_has_tests_and_they_exist() -> None:
    here = {
        name for path in FILES for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
    }
    sources = tracked("reference_server/tests/*.cpp")
    cpp = {".".join(pair) for path in sources for pair in CPP_TEST.findall(path.read_text("utf-8"))}
    assert len(rows()) > 40
    for row in rows():
        named = re.findall(r"`([\w.]+)`", row[-1])
        assert named, row
        assert set(named) <= here | cpp, f"{row[0]}: {set(named) - here - cpp}"


def test_each_test_that_is_named_after_a_row_stands_in_the_page() -> None:
    here = python_tests(r"test_(?:ring|kourier|lithium)_\w+")
    source = (ROOT / "reference_server/tests/parity_test.cpp").read_text("utf-8")
    cpp = {".".join(pair) for pair in CPP_TEST.findall(source)}
    assert here | cpp <= set(named_tests())
