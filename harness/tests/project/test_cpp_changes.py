"""What is changed in a source to see whether somebody notices."""

from __future__ import annotations

import pytest

from httpmark.harness.tests.shared.cpp_changes import Change, changes, drawn

# A source, and lines that its changes lead to; all of them.
SAMPLES = {
    "comparisons": ("a = b <= c;", {"a = b < c;", ";"}),
    "brackets of templates": ("std::vector<int> a(b);", set()),
    "references": ("f(T& a, T&& b);", {";"}),
    "logic": ("return a && !b;", {"return a || !b;", "return a && b;"}),
    "numbers": ("return 10U;", {"return 11U;", "return 9U;"}),
    "no negative numbers": ("return 0;", {"return 1;"}),
    "hexadecimal numbers": ("return 0x1F;", {"return 0x20;", "return 0x1E;"}),
    "characters": ("return '\\r';", {"return '\\n';"}),
    "letters": ("return 'f';", {"return 'g';"}),
    "strings": ('return "close: ";', {'return "closf: ";'}),
    "rows of the table of faults": (
        '{Reason::kA, "a", 400, "RFC 9110"},',
        {'{Reason::kA, "a", 399, "RFC 9110"},', '{Reason::kA, "a", 401, "RFC 9110"},'},
    ),
    "truth": ("return true;", {"return false;"}),
    "character classes": ("return is_digit(c);", {"return is_hexdig(c);"}),
    "enumerators": (
        "return a ? Kind::kNo : Kind::kYes;",
        {"return a ? Kind::kYes : Kind::kYes;", "return a ? Kind::kNo : Kind::kNo;"},
    ),
    "conditions": ("if (a(b)) return c;", {"if (!(a(b))) return c;"}),
    "what no client can cause": ("CHECK(a == 1);", set()),
    "comments": ("// a == 1", set()),
    "directives": ("#if A == 1", set()),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_each_token_is_changed_into_its_neighbours(name: str) -> None:
    source, expected = SAMPLES[name]
    found = {one.apply(source) for one in changes({"a.cpp": source})}
    assert found == expected


def test_a_statement_that_goes_on_over_lines_is_not_left_out() -> None:
    source = "a = f(b,\n      c);\nd =\n    e;\n"
    assert {one.kind for one in changes({"a.cpp": source})} == set()


def test_a_change_tells_where_it_stands() -> None:
    source = "int f() {\n    return 1;  // one\n}\n"
    one = changes({"a.cpp": source})[0]
    assert one.line(source) == 2
    assert one.lines(source) == ("return 1; // one", "return 0; // one")


def test_a_change_is_not_applied_to_another_source() -> None:
    with pytest.raises(AssertionError, match=r"a\.cpp"):
        Change("a.cpp", 0, "1", "2", "number").apply("3")


def test_one_seed_gives_one_list_and_a_longer_one_begins_with_it() -> None:
    sources = {"a.cpp": "return a == 1 && b != 2;", "b.cpp": "f(3);"}
    assert drawn(sources, 7, 3) == drawn(sources, 7, 9)[:3]
    assert drawn(sources, 7, 9) != drawn(sources, 8, 9)
    assert len(set(drawn(sources, 7, 99))) == len(changes(sources))
