"""The suite ``forwarding`` of a run: who can be asked, and what is kept."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.command import run_forwarding, run_options, run_servers, run_session
from httpmark.harness.command.run_log import RunLog
from httpmark.harness.judging.forwarding_rules import RULES
from httpmark.harness.model import run_folder
from httpmark.harness.model.run import Run
from httpmark.harness.servers import manifests
from httpmark.harness.tests.shared.command_process import run as command
from httpmark.harness.tests.shared.made_proxy_folder import made
from httpmark.harness.tests.shared.silent_events import SilentEvents

ONLY = frozenset({"field_value_octet_only-00", "get-plain", "forwarded-connection-twice"})


def surveyed(folder: Path, *, minutes: float = 60.0) -> run_servers.Entry:
    """What is known of the server ``made`` after a survey into a run folder."""
    entry = run_servers.Entry(server=manifests.server("made"))
    log = RunLog(SilentEvents(), folder)
    suite = run_forwarding.Forwarding(loading.load(), log, folder, minutes=minutes, only=ONLY)
    suite.survey(entry)
    assert suite.terms is not None
    assert suite.terms.rules == RULES
    assert suite.terms.origin.startswith("httpmark reference")
    return entry


@pytest.mark.process
def test_a_proxy_is_surveyed_and_the_bytes_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPMARK_IMAGES", str(made(tmp_path / "images", "nul")))
    entry = surveyed(tmp_path)
    assert entry.forwarding_reason is None
    assert entry.forwarding is not None
    assert entry.forwarding.asked == len(ONLY)
    assert "nul" in {count.rule for count in entry.forwarding.rules}
    kept = (tmp_path / "forwarding" / "made.jsonl").read_text("utf-8").splitlines()
    assert "field_value_octet_only-00" in {json.loads(line)["passage"]["case"] for line in kept}


@pytest.mark.process
def test_a_survey_that_takes_too_long_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPMARK_IMAGES", str(made(tmp_path / "images")))
    entry = surveyed(tmp_path, minutes=0.0)
    assert entry.forwarding is None
    assert entry.forwarding_reason == (
        "not asked to the end: it took longer than the 0 minutes of --suite-minutes"
    )


@pytest.mark.process
def test_a_server_that_is_no_proxy_is_not_applicable_and_the_result_says_so(
    tmp_path: Path,
) -> None:
    options = run_options.Options(
        suites=("forwarding",), profiles=(), servers=("null",), seed=1, out=tmp_path / "r",
        runtime="process",
    )  # fmt: skip
    run = run_session.Runner(options, SilentEvents()).run()
    (server,) = run.servers
    assert server.forwarding is None
    assert server.forwarding_reason == "not applicable: its server.toml has no [proxy]"
    assert run.forwarding is None
    assert run.completed.suites == (("forwarding", "null"),)
    result = json.loads((tmp_path / "r" / run_folder.RESULT).read_text("utf-8"))
    jsonschema.validate(result, msgspec.json.schema(Run))


@pytest.mark.nightly
@pytest.mark.process
def test_a_run_asks_every_message_and_judges_no_server_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPMARK_IMAGES", str(made(tmp_path / "images", "nul")))
    code, out, _ = command(
        "run", "--suite", "forwarding", "--server", "made", "--out", "r", cwd=tmp_path, timeout=600
    )
    assert code == 0
    assert "FORWARDING: what reached the origin behind each front end" in out
    run = run_folder.read(tmp_path / "r")
    assert run.forwarding is not None
    assert run.servers[0].forwarding is not None
    assert run.servers[0].forwarding.asked > 5000


@pytest.mark.process
def test_a_check_says_why_it_cannot_ask_it(tmp_path: Path) -> None:
    code, _, errors = command("check", "http://127.0.0.1:1/", "--suite", "forwarding", cwd=tmp_path)
    assert code == 2
    (line,) = errors.strip().splitlines()
    assert "cannot ask the suite 'forwarding' of a target: what reaches the origin is" in line


def test_no_run_asks_it_by_default() -> None:
    known = loading.load()
    for quick, full in ((True, False), (False, True), (False, False)):
        assert "forwarding" not in known.default_suites(quick=quick, full=full, only_one=False)
