"""What a run over many servers found, as tables of a page."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from httpmark.harness.command import cli
from httpmark.harness.command.subcommands import findings
from httpmark.harness.gate.broken_requirements import Group, Summary
from httpmark.harness.gate.findings import Finding, Status
from httpmark.harness.judging.message_readings import Split
from httpmark.harness.model import run_folder
from httpmark.harness.model.cases import Level
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.report import field_findings
from httpmark.harness.report.field_findings import BEGIN, END
from httpmark.harness.tests.shared.made_run import made_run, with_server

NAMES = ("reference", "go_net_http", "rust_hyper", "null")


def group(id: str, *, smuggling: bool = False) -> Group:
    found = Finding(
        server="s", suite="rfc", id=f"case-{id}", title="t", level=Level.MUST, clause="RFC 9112 1",
        status=Status.FAILED, message="m", actual="200 | \x1b[31m" + "x" * 200,
    )  # fmt: skip
    return Group(
        id=id, title=f"rule {id}", level=Level.MUST, clause="RFC 9112 1", found=(found,),
        smuggling=smuggling,
    )  # fmt: skip


def summary(server: str, *groups: Group) -> Summary:
    return Summary(server=server, title=server, met=10, broken=groups)


def a_field() -> field_findings.Field:
    run = with_server(made_run(NAMES), "rust_hyper", engine="go_net_http")
    return field_findings.field(
        run,
        [
            summary("reference"),
            summary("go_net_http", group("b", smuggling=True), *map(group, ("a", "c", "d"))),
            summary("rust_hyper", group("a")),
        ],
    )


def test_who_breaks_least_comes_first_and_controls_are_left_out() -> None:
    found = a_field()
    judged = [one.name for one in found.servers if not one.unavailable]
    assert judged == ["reference", "rust_hyper", "go_net_http"]
    assert [one.unavailable != "" for one in found.servers] == [False] * 3 + [True]
    assert found.servers[1].asked == 11


def test_a_rule_names_all_who_break_it_and_smuggling_comes_first() -> None:
    rules = {one.requirement: one for one in a_field().rules}
    assert list(rules) == ["b", "a", "c", "d"]
    assert rules["a"].servers == ("Go net/http", "Rust hyper")
    assert rules["b"].smuggling


def test_what_is_doubtful_counts_for_nobody() -> None:
    found = field_findings.without_doubtful(a_field(), {"a": ["go_net_http"], "x": ["rust_hyper"]})
    servers = {one.name: one for one in found.servers}
    assert [one.requirement for one in servers["go_net_http"].broken] == ["b", "c", "d"]
    assert [one.requirement for one in servers["go_net_http"].doubtful] == ["a"]
    assert servers["rust_hyper"].doubtful == ()
    assert {one.requirement: len(one.servers) for one in found.rules} == {
        "a": 1, "b": 1, "c": 1, "d": 1,
    }  # fmt: skip
    assert "1 failure is not counted as broken" in field_findings.markdown(found)
    assert "not counted" not in field_findings.markdown(a_field())


def test_the_page_shows_three_each_and_hostile_text_is_harmless() -> None:
    text = field_findings.markdown(a_field())
    assert "3 servers with 2 HTTP parsers" in text
    line = next(line for line in text.splitlines() if line.startswith("| Go net/http"))
    assert "**smuggling**: rule b (RFC 9112 1): `case-b`" in line
    assert line.endswith("`case-c`; and 1 more |")
    assert "\x1b" not in text
    assert "| rule a | RFC 9112 1 | 2: Go net/http, Rust hyper |" in text


def test_a_message_that_is_read_in_two_ways_names_who_reads_it_how() -> None:
    readings = (("1 request", ("reference", "rust_hyper")), ("2 requests", ("go_net_http",)))
    one = Split(case="c", title="a|b", clause="RFC 9112 6.3", readings=readings)
    found = field_findings.field(made_run(NAMES), [], [one])
    assert found.splits[0].readings[1] == ("2 requests", ("Go net/http",))
    text = field_findings.markdown(found)
    assert (
        "| a\\|b: `c` | RFC 9112 6.3 "
        "| **1 request**: httpmark reference, Rust hyper; **2 requests**: Go net/http |" in text
    )
    assert "in two ways" not in field_findings.markdown(field_findings.field(made_run(NAMES), []))


def test_the_tables_take_the_place_of_earlier_ones_and_of_nothing_else() -> None:
    found = a_field()
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    once = field_findings.placed(page, found)
    assert once.startswith("before\n" + BEGIN)
    assert once.endswith(END + "\nafter\n")
    assert "old" not in once
    assert field_findings.placed(once, found) == once
    with pytest.raises(ValueError, match="no line"):
        field_findings.placed("nothing", found)


def test_the_command_writes_the_page_and_its_data(tmp_path: Path) -> None:
    run_folder.write(made_run(NAMES), tmp_path)
    page = tmp_path / "README.md"
    page.write_text(f"# Page\n{BEGIN}\n{END}\n", "utf-8")
    done = CliRunner().invoke(cli.httpmark, ["findings", str(tmp_path), "--page", str(page)])
    assert done.exit_code == 0, done.output
    data = msgspec.json.decode(page.with_suffix(".json").read_bytes(), type=field_findings.Field)
    assert page.read_text("utf-8") == "# Page\n" + field_findings.markdown(data)


def test_servers_of_a_later_run_are_added_or_stand_for_those_of_their_name() -> None:
    first = with_server(made_run(NAMES), "rust_hyper", unavailable="no cargo")
    again = with_server(made_run(("go_net_http", "rust_hyper")), "go_net_http", version="9")
    failed = with_server(made_run(("go_net_http",)), "go_net_http", unavailable="port in use")
    new = with_server(made_run(("reference",)), "reference", name="caddy")
    run, owner = field_findings.together([first, again, failed, new])
    absent = owner.pop("absent_server")
    assert absent == 0
    assert owner == {"reference": 0, "go_net_http": 1, "rust_hyper": 1, "null": 0, "caddy": 3}
    found = {one.name: one for one in run.servers}
    assert found["go_net_http"].version == "9"
    assert not found["rust_hyper"].unavailable


def test_the_command_counts_what_each_run_says_of_its_own_servers(tmp_path: Path) -> None:
    old, new, third = tmp_path / "old", tmp_path / "new", tmp_path / "third"
    for one in (old, new, third):
        one.mkdir()
    run_folder.write(made_run(NAMES), old)
    run_folder.write(with_server(made_run(NAMES), "go_net_http", version="9"), new)
    told = CliRunner().invoke(cli.httpmark, ["findings", str(old), "--with", str(new), "--json"])
    assert told.exit_code == 0, told.output
    servers = {one["name"]: one for one in json.loads(told.output)["servers"]}
    assert servers["go_net_http"]["version"] == "9"
    assert "null" not in servers, "a control is left out"
    other = msgspec.structs.replace(made_run(NAMES), suites=("no", "such"))
    run_folder.write(other, third)
    refused = CliRunner().invoke(cli.httpmark, ["findings", str(old), "--with", str(third)])
    assert isinstance(refused.exception, HarnessError)
    assert "not a run of the suites of" in str(refused.exception)


def test_the_readings_beside_a_page_say_what_does_not_count(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    assert findings.doubtful(page) == {}
    readings = tmp_path / "README_readings.toml"
    readings.write_text('[[reading]]\nrequirement = "a"\ndoubtful = ["s"]\nwhy = "w"\n', "utf-8")
    assert findings.doubtful(page) == {"a": ("s",)}
    readings.write_text("[[reading]]\nwhy = 1\n", "utf-8")
    with pytest.raises(HarnessError, match=r"README_readings.toml: .*requirement|Expected `str`"):
        findings.doubtful(page)
