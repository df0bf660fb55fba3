"""`httpmark forwarding` whole: made proxies, each with one bug, and the ones of this machine."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from httpmark.harness.catalogue import forwarding_messages
from httpmark.harness.command import forwarding_run
from httpmark.harness.judging.forwarding_rules import BY_ID
from httpmark.harness.model.errors import HarnessError, NothingSelected
from httpmark.harness.model.forwarding import FrontEnd
from httpmark.harness.servers import proc_files
from httpmark.harness.tests.shared import command_process
from httpmark.harness.tests.shared.made_proxy import BUGS
from httpmark.harness.tests.shared.made_proxy_folder import made
from httpmark.harness.tests.shared.pytest_rules import machine_has
from httpmark.harness.tests.shared.silent_events import SilentEvents

# The messages that are made for proxies, and cases that show each bug.
SAMPLE = (
    "content-length-then-transfer-encoding-short", "content-length-then-transfer-encoding-exact",
    "content-length-then-transfer-encoding-beyond", "transfer-encoding-then-content-length-zero",
    "content-length-plus-sign", "content-length-two-zeros", "content-length-list-equal-numbers",
    "transfer-encoding-chunked-gzip-lines", "transfer-encoding-http-1-0-keep-alive", "fold-space",
    "field-name-space-before-colon", "leading-tab-line", "field_value_octet_only-00",
    "field_value_octet_only-01", "host-missing", "host-twice-different",
    "field_name_octet_first-28", "chunk-size-plus", "chunk-data-without-crlf", "trailer-nul",
    "target-angle-brackets", "cr-before-field", "cr-in-target", "lf-throughout", "version-1-2",
    "pipeline-two", "pipeline-get-post-get", "expect-continue", "trailer-one", "trailer-connection",
    "upgrade-h2c", "absolute-form-foreign-host-field", "host-missing-http-1-0",
    "whitespace-led-first-line", "smuggle-chunk-over-content-length", "smuggle-content-request",
)  # fmt: skip


def sample() -> list[str]:
    return [*(one.id for one in forwarding_messages.messages()), *SAMPLE]


def surveyed(words: list[str]) -> FrontEnd:
    servers = forwarding_run.chosen(["made"])
    (found,) = forwarding_run.surveyed(servers, words, events=SilentEvents()).survey.front_ends
    return found


def broken_by(folder: Path, monkeypatch: pytest.MonkeyPatch, bug: str) -> set[str]:
    monkeypatch.setenv("HTTPMARK_IMAGES", str(made(folder, bug)))
    found = surveyed(sample())
    assert found.unavailable is None, found.unavailable
    return {count.rule for count in found.rules}


@pytest.mark.process
def test_a_proxy_that_keeps_the_rules_breaks_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert broken_by(tmp_path, monkeypatch, "") == set()


# What a bug breaks beside its own rule. A message that is passed on as it came has no Via.
ALSO = {
    "smuggled": {"content", "read-on"},
    "hidden": {"content", "via"},
    "read-on": {"repaired"},
    "trailers": {"connection-options"},
    "own-version": {"follows-version"},
}


@pytest.mark.process
@pytest.mark.parametrize("bug", BUGS)
def test_each_bug_is_found_and_nothing_else(
    bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = broken_by(tmp_path, monkeypatch, bug)
    assert BUGS[bug] in found
    assert found <= {BUGS[bug]} | ALSO.get(bug, {"via"})


def test_each_rule_has_a_bug_that_breaks_it() -> None:
    # These are told of servers, and no small proxy does so.
    assert set(BY_ID) - set(BUGS.values()) == {"completed", "tolerated"}


@pytest.mark.nightly
@pytest.mark.process
def test_a_proxy_that_keeps_the_rules_breaks_none_with_any_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPMARK_IMAGES", str(made(tmp_path)))
    found = surveyed([])
    assert found.asked > 5000
    assert {count.rule: count.cases for count in found.rules} == {}


@pytest.mark.process
def test_a_proxy_that_forwards_nothing_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path)
    manifest = folder / "made" / "server.toml"
    # No origin has such a port.
    text = manifest.read_text().replace("{origin}", "127.0.0.1:1{origin_port}")
    manifest.write_text(text.replace("version =", "ready_timeout_s = 1\nversion ="))
    monkeypatch.setenv("HTTPMARK_IMAGES", str(folder))
    found = surveyed(["forwarded-get"])
    assert found.unavailable is not None
    assert found.asked == 0


def test_only_a_server_with_a_proxy_table_is_taken() -> None:
    with pytest.raises(HarnessError, match=r"null: its server.toml has no \[proxy\]"):
        forwarding_run.chosen(["null"])
    with pytest.raises(HarnessError, match="no server is called 'ngnix'; did you mean nginx"):
        forwarding_run.chosen(["ngnix"])
    assert {"nginx", "haproxy"} <= {one.name for one in forwarding_run.chosen([])}


def test_a_case_that_is_not_there_is_told() -> None:
    with pytest.raises(HarnessError, match="no case 'get-plian': did you mean get-plain"):
        forwarding_run.surveyed([], ["get-plian"], events=SilentEvents())
    with pytest.raises(HarnessError, match="only cases of rfc and smuggling are sent to proxies"):
        forwarding_run.surveyed([], ["path_byte"], events=SilentEvents())
    with pytest.raises(NothingSelected):
        forwarding_run.surveyed([], ["pipeline-never-read"], events=SilentEvents())


@pytest.mark.process
def test_the_command_writes_the_survey_the_bytes_and_the_page(tmp_path: Path) -> None:
    folder = made(tmp_path / "servers", "via")
    words = ("--case", "forwarded-get", "--case", "host-missing")
    code, out, errors = command_process.run(
        "forwarding", "made", *words, "--json", "--out", "found", "--page", "forwarding.md",
        cwd=tmp_path, images=folder,
    )  # fmt: skip
    assert code == 0, errors
    survey = json.loads(out)
    assert survey == json.loads((tmp_path / "found" / forwarding_run.RESULT).read_text())
    (one,) = survey["front_ends"]
    assert (one["asked"], one["forwarded"]) == (2, 1)
    assert [count["rule"] for count in one["rules"]] == ["via"]
    lines = (tmp_path / "found" / "made.jsonl").read_text().splitlines()
    heard = [json.loads(line) for line in lines]
    assert [each["passage"]["case"] for each in heard] == ["forwarded-get"]
    assert (
        "| A gateway adds Via to each request | MUST |" in (tmp_path / "forwarding.md").read_text()
    )


@pytest.mark.process
def test_a_single_case_is_shown_on_both_sides(tmp_path: Path) -> None:
    code, out, errors = command_process.run(
        "forwarding", "made", "--case", "forwarded-connection-names-a-field",
        cwd=tmp_path, images=made(tmp_path / "servers", "connection-options"),
    )  # fmt: skip
    assert code == 0, errors
    sent, _, reached = out.partition("reached the origin")
    assert "Connection: X-Hop" in sent
    assert "x-hop: 1" in reached
    assert "connection-options: kept x-hop, which Connection names, and again" in reached


@pytest.mark.process
def test_an_interrupt_stops_all_servers(tmp_path: Path) -> None:
    folder = made(tmp_path / "servers")
    with command_process.start("forwarding", "made", cwd=tmp_path, images=folder) as process:
        end = time.monotonic() + 30
        while len(tree := proc_files.descendants(process.pid)) < 5 and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert len(tree) >= 5
    assert not [pid for pid in tree if Path(f"/proc/{pid}").exists()]


INSTALLED = {
    "nginx": "nginx", "apache": "apache2", "haproxy": "haproxy", "lighttpd": "lighttpd",
    "varnish": "varnishd", "h2o": "h2o", "squid": "squid", "trafficserver": "traffic_server",
    "caddy": "go",
}  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize("name", INSTALLED)
def test_a_proxy_of_this_machine_forwards_and_is_judged(name: str) -> None:
    if not machine_has(INSTALLED[name]):
        pytest.skip(f"{INSTALLED[name]} is not on this machine")
    words = ["forwarded-get", "forwarded-post", "forwarded-options-0"]
    servers = forwarding_run.chosen([name])
    (found,) = forwarding_run.surveyed(servers, words, events=SilentEvents()).survey.front_ends
    assert found.unavailable is None, found.unavailable
    assert found.version
    assert (found.asked, found.forwarded >= 2) == (3, True)
    assert {count.rule for count in found.rules} <= {"via", "max-forwards"}
