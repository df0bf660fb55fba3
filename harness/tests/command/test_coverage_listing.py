"""`httpmark list coverage` shows each rule in a line, and each hole of one rule with its bytes."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from httpmark.harness.catalogue import grammar_coverage, grammar_table, loading
from httpmark.harness.command import known_commands
from httpmark.harness.command.coverage_listing import listing


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one family is there, so that the table is quick."""
    found = grammar_coverage.coverage(loading.load(), {"method_octet", "request-line-two-spaces"})
    monkeypatch.setattr(grammar_coverage, "coverage", lambda _known: found)


@pytest.mark.usefixtures("few")
def test_each_rule_has_a_line_with_its_counts() -> None:
    rows, value = listing(None)
    assert len(rows) == 1 + len(grammar_table.RULES)
    [method] = [row for row in rows if row.startswith("method")]
    known = next(one for one in value["coverage"] if one["rule"] == "method")
    assert known["refused"] >= 13
    assert re.search(rf" {known['refused']} of {known['deviations']} ", method)
    assert len(known["holes"]) == known["deviations"] - known["refused"]


@pytest.mark.usefixtures("few")
def test_one_rule_is_shown_with_the_bytes_of_each_hole() -> None:
    rows, value = listing("Method")
    [rule] = value["coverage"]
    text = "\n".join(rows)
    assert rule["holes"]
    for hole in rule["holes"]:
        assert hole["deviation"] in text
        assert hole["bytes"] in text
    assert r"GE\x00 /abc HTTP/1.1\r\n" in text


@pytest.mark.usefixtures("few")
def test_the_command_prints_text_and_json_and_refuses_what_it_does_not_know() -> None:
    command = known_commands.load("list")
    shown = CliRunner().invoke(command, ["coverage", "method", "--json"])
    assert json.loads(shown.output)["coverage"][0]["rule"] == "method"
    for words, message in (
        (["coverage", "meth"], "no rule 'meth'"),
        (["cases", "method"], "only 'list coverage' takes a rule"),
    ):
        refused = CliRunner().invoke(command, words)
        assert message in str(refused.exception)
