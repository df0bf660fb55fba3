"""The command writes every format, agrees with itself, and turns the ratchet."""

from __future__ import annotations

import datetime
import json
import re
import shlex
import signal
import time
from pathlib import Path

import jsonschema
import junitparser
import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from httpmark.harness.command import outputs
from httpmark.harness.gate import baseline, conclusion, findings
from httpmark.harness.gate.findings import Gate, Status
from httpmark.harness.load import comparison as load_comparison
from httpmark.harness.load import paired_verdicts
from httpmark.harness.model import run_folder as model_run_folder
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared.command_process import last_line, start
from httpmark.harness.tests.shared.command_process import run as command
from httpmark.harness.tests.shared.judged_cases import ACCEPTED, check_of
from httpmark.harness.tests.shared.made_findings import mixed, run_of
from httpmark.harness.tests.shared.native_server import listening
from httpmark.harness.tests.shared.repository import ROOT

TODAY = datetime.date(2026, 11, 21)


def gated(name: str, ruleset: str = "seed") -> outputs.Gated:
    run, gate = run_of(name), Gate(ruleset=ruleset)
    return outputs.gated(run, findings.findings(run, gate=gate), gate=gate, today=TODAY)


def test_every_format_is_written_and_they_agree(tmp_path: Path) -> None:
    one = gated("go_net_http")
    outputs.write_all(one, tmp_path / "o")
    files = {path.name for path in (tmp_path / "o").iterdir()}
    assert files == {file for file, _ in outputs.FORMATS.values()} | {"result.json"}
    failed = sum(finding.status is Status.FAILED for finding in one.found)
    assert failed
    assert junitparser.JUnitXml.fromfile(str(tmp_path / "o" / "junit.xml")).failures == failed
    results = json.loads((tmp_path / "o" / "results.sarif").read_text())["runs"][0]["results"]
    assert sum(result["level"] == "error" for result in results) == failed
    text = (tmp_path / "o" / "metrics.txt").read_text()
    metrics = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    said = {
        sample.labels["said"]: sample.value
        for family in metrics if family.name == "httpmark_findings" for sample in family.samples
    }  # fmt: skip
    assert said["failed"] == failed
    assert f"{failed} failed" in (tmp_path / "o" / "summary.md").read_text()
    assert f"{failed} failed" in conclusion.last_line(one.found, one.code, interrupted=False)


def test_a_badge_is_of_one_server_and_each_has_its_own(tmp_path: Path) -> None:
    run = mixed()
    several = outputs.gated(run, findings.findings(run), gate=Gate(), today=TODAY)
    with pytest.raises(HarnessError, match="this run has"):
        outputs.render("badge", several)
    outputs.write_all(several, tmp_path)
    assert (tmp_path / "badge-go_net_http.json").exists()
    assert not (tmp_path / "badge-null.json").exists()


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file, link = tmp_path / "a", tmp_path / "link"
    file.write_text("old")
    link.symlink_to(file)
    outputs.write(link, "new")
    assert link.is_symlink()
    assert file.read_text() == "new"
    outputs.write(Path("/dev/null"), "anything")
    with pytest.raises(HarnessError, match="name another file"):
        outputs.write(tmp_path / "nowhere" / "x", "text")
    assert {path.name for path in tmp_path.iterdir()} == {"a", "link"}
    with pytest.raises(HarnessError, match="unknown format 'xml'"):
        outputs.render("xml", gated("reference"))


def test_what_a_terminal_shows_fits_it_but_for_what_is_to_be_copied() -> None:
    for name in ("reference", "go_net_http", "rust_hyper"):
        one = gated(name)
        lines = [line.text for line in outputs.verdict_lines(one, Path("none"), 80)]
        assert all(len(line) <= 80 for line in lines)
        last = next(line for line in reversed(lines) if line.startswith("GATE"))
        assert last.startswith(f"GATE {'failed, exit code 1' if one.code else 'passed'}")


def test_a_stored_check_is_told_again_as_it_was_printed(tmp_path: Path) -> None:
    run, found = check_of({"host-missing": ACCEPTED, "host-query": ACCEPTED})
    listed = tuple(
        msgspec.structs.replace(one, status=Status.EXPECTED) if one.id == "host-query" else one
        for one in found
    )
    told = conclusion.conclusion(run, listed, 1)
    run = msgspec.structs.replace(run, conclusion=told)
    printed = outputs.verdict_lines(outputs.Gated(run=run, found=listed, code=1), tmp_path, 80)
    again = outputs.scoreboard_text(tmp_path, run)
    assert again == "".join(f"{line.text}\n" for line in printed)
    assert again.startswith("Breaks 2 of 2 requirements.\nThe baseline lists 1 of them.\n")


def test_no_output_names_a_path_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration file makes the baseline's path absolute, which means nothing elsewhere."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    run, gate = run_of("go_net_http"), Gate(ruleset="seed")
    raw = findings.findings(run, gate=gate)
    known = {finding.id: "" for finding in raw}
    held = baseline.empty(tmp_path / "known failures.toml")
    held, _ = baseline.changed(held, raw[:1], update=False, growth="as it is", known=known)
    one = outputs.gated(run, raw, gate=gate, held=held, today=TODAY)
    results = json.loads(outputs.render("sarif", one))["runs"][0]["results"]
    places = {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results}
    assert places == {"known%20failures.toml"}
    issues = json.loads(outputs.render("code-quality", one))
    assert {issue["location"]["path"] for issue in issues} == {"known failures.toml"}
    for form in outputs.FORMATS:
        assert str(tmp_path) not in outputs.render(form, one), form


FAMILY = "field_name_length_space_before_colon"
FEW = ("get-plain", "host-missing", FAMILY)


@pytest.mark.process
def test_the_gate_from_configuration_to_ratchet(tmp_path: Path) -> None:
    """One server, as a project would: red, excused, green, worse, mended."""
    (tmp_path / "httpmark.toml").write_text(
        f'[check]\nsuite = "rfc"\ncase = {json.dumps(FEW)}\noutputs = "out"\nfail-under = 1\n'
    )
    known = ("--baseline", "known.toml", "--out")
    with listening("null") as target:
        code, out, _ = command("check", target, "--out", "r1", cwd=tmp_path)
        assert code == 1
        assert "GATE failed, exit code 1" in out
        assert f"httpmark replay host-missing {target}" in out
        code, out, errors = command(
            "check", target, *known, "r2", "--allow-growth", "a null server", cwd=tmp_path
        )
        assert code == 0, out
        assert "host-missing: added" in errors
        assert "2 expected" in " ".join(out.split())
        junit = junitparser.JUnitXml.fromfile(str(tmp_path / "out" / "junit.xml"))
        excused = [
            case.name
            for suite in junit
            for case in suite
            if [why.message for why in case.result] == ["expected failure: a null server"]
        ]
        assert (junit.failures, sorted(excused)) == (0, [FAMILY, "host-missing"])
        text = (tmp_path / "known.toml").read_text()
        (tmp_path / "known.toml").write_text(text.replace("at_most = 129", "at_most = 128"))
        code, out, _ = command("check", target, *known, "r3", cwd=tmp_path)
        assert code == 1
        assert "the baseline allows 128" in " ".join(out.split())
        # The command line beats the file.
        code, _, _ = command(
            "check", target, "--case", "get-plain", "--fail-under", "0", "--out", "r0", cwd=tmp_path
        )
        assert code == 0
    with listening("server") as target:
        (tmp_path / "known.toml").write_text(text)
        code, out, _ = command("check", target, *known, "r4", "--strict-baseline", cwd=tmp_path)
        assert code == 1
        assert "remove it" in " ".join(out.split())
        code, _, errors = command(
            "check", target, *known, "r5", "--strict-baseline", "--update", cwd=tmp_path
        )
        assert code == 0, errors
        assert f"{FAMILY}: passes, removed" in errors
        assert (tmp_path / "known.toml").read_text().strip() == ""
    result = model_run_folder.read(tmp_path / "r1")
    stored = outputs.stored(tmp_path / "r1", result)
    for form in outputs.FORMATS:
        assert outputs.render(form, stored)
    code, out, _ = command("report", "r1", "--format", "junit", "--out", "j.xml", cwd=tmp_path)
    assert (code, out) == (0, "j.xml\n")
    assert junitparser.JUnitXml.fromfile(str(tmp_path / "j.xml")).failures == 2
    code, out, _ = command("report", "r1", "--format", "scoreboard", cwd=tmp_path)
    assert out.startswith("Breaks 2 of ")
    copied = "    again    httpmark replay "
    assert all(len(line) <= 80 or line.startswith(copied) for line in out.splitlines())
    code, out, _ = command("report", "r1", "--json", cwd=tmp_path)
    assert json.loads(out)["findings"][0]["server"] == "target"
    code, out, _ = command("export", "r1", "--csv", "--table", "findings", cwd=tmp_path)
    assert out.startswith("server,suite,id,")
    code, out, _ = command(
        "export", "r1", "--parquet", "--table", "exchanges", "--out", "p", cwd=tmp_path
    )
    assert out == "p/exchanges.parquet\n"


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--update",), "--update needs --baseline FILE"),
        (("--strict-baseline",), "--strict-baseline needs --baseline FILE"),
        (("--baseline", "none.toml", "--update"), "give a baseline that exists"),
        (("--baseline", "bad.toml"), "did you mean path_byte?"),
        (("--config", "none.toml"), "name a file that exists"),
        (("--config", "wrong.toml"), "did you mean fail-under?"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_sent(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "bad.toml").write_text('[[expected]]\nid="path_bite"\noutcome="any"\nreason="r"\n')
    (tmp_path / "wrong.toml").write_text("[check]\nfail-over = 3\n")
    code, out, errors = command("check", "http://127.0.0.1:1/", *words, cwd=tmp_path)
    assert code == 2
    assert out == ""
    assert said in errors
    assert len(errors.strip().splitlines()) == 1


@pytest.mark.process
@pytest.mark.parametrize("of", ["result", "configuration", "baseline"])
def test_schemas_are_published(tmp_path: Path, of: str) -> None:
    code, out, _ = command("list", "schema", "--of", of, cwd=tmp_path)
    assert code == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(out))


def comparison(*verdicts: paired_verdicts.Gate | None) -> load_comparison.Comparison:
    lines = tuple(
        load_comparison.Line(
            profile="pipelined",
            metric=f"m{at}",
            server=None,
            judged=paired_verdicts.Judged(
                verdict=verdict, why="because", ratio=1.2, interval=(1.1, 1.3), level=0.95,
                margin=0.03, pairs=12, detectable=None,
            )
            if verdict
            else None,
            verdict=verdict,
            why="because",
        )
        for at, verdict in enumerate(verdicts)
    )  # fmt: skip
    return load_comparison.Comparison(
        base="main", head="mine", how="side by side", verdict=load_comparison.verdict_of(lines),
        lines=lines, notes=("a note",), differences=(), seed=7,
    )  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize(
    ("verdict", "said", "policy", "code"),
    [
        (paired_verdicts.Gate.PASS, Status.PASSED, "fail", 0),
        (paired_verdicts.Gate.FAIL, Status.FAILED, "warn", 1),
        (paired_verdicts.Gate.INCONCLUSIVE, Status.UNDECIDED, "warn", 0),
        (paired_verdicts.Gate.INCONCLUSIVE, Status.UNDECIDED, "fail", 4),
    ],
)
def test_three_answers_of_a_comparison_reach_every_reader(
    verdict: paired_verdicts.Gate, said: Status, policy: str, code: int
) -> None:
    one = outputs.compared(comparison(verdict, None), inconclusive=policy)
    assert one.code == code
    assert [finding.status for finding in one.found] == [said, Status.NOT_APPLICABLE]
    read = junitparser.JUnitXml.fromstring(outputs.render("junit", one).encode())
    skipped = 1 + (said is Status.UNDECIDED)
    assert (read.tests, read.failures, read.skipped) == (2, int(said is Status.FAILED), skipped)
    headline = {0: "passed", 1: "failed", 4: "inconclusive"}[code]
    if said is Status.UNDECIDED:
        headline = "inconclusive"
    assert outputs.render("summary", one).startswith(f"## httpmark: {headline}\n")
    assert "1.200 times as bad" in one.found[0].message
    for result in json.loads(outputs.render("sarif", one))["runs"][0]["results"]:
        assert (
            result["partialFingerprints"]["httpmarkFinding/v1"] == "mine/performance/pipelined.m0"
        )


@pytest.mark.process
def test_a_comparison_of_folders_writes_what_is_asked(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        model_run_folder.write(run_of("go_net_http"), tmp_path / name)
    for policy, code in (("warn", 0), ("fail", 4)):
        got, _, errors = command(
            "compare", "a", "b", "--junit", "j.xml", "--inconclusive", policy, cwd=tmp_path
        )
        assert got == code, errors
        read = junitparser.JUnitXml.fromfile(str(tmp_path / "j.xml"))
        assert read.skipped == read.tests > 0


@pytest.mark.process
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_check_writes_what_it_has_and_gates_nothing(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with listening("null") as target:
        process = start("check", target, "--suite", "seed", "--outputs", "o", cwd=tmp_path)
        run_folder = tmp_path / "httpmark-runs"
        deadline = time.monotonic() + 60
        while not list(run_folder.glob("*/evidence.sqlite")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    summary = (tmp_path / "o" / "summary.md").read_text()
    assert summary.startswith("## httpmark: interrupted, gates not evaluated\n")
    assert f"exit code {code} " in summary


@pytest.mark.process
def test_the_gate_line_of_the_readme_works_the_first_time(tmp_path: Path) -> None:
    """Without a baseline it judges, and names the option that creates one."""
    readme = (ROOT / "README.md").read_text("utf-8")
    (line,) = re.findall(r"^httpmark (check .*--baseline .*)$", readme, re.MULTILINE)
    words = shlex.split(line)
    server = words.index("--serve") + 1
    words[server] = f"{binaries.need('null')} --address 127.0.0.1 --port {{port}} --workers 1"
    words += ["--suite", "rfc", "--case", "host-missing", "--case", "get-plain"]
    file = tmp_path / words[words.index("--baseline") + 1]

    code, out, _ = command(*words, cwd=tmp_path)
    assert code == 1
    assert last_line(out).startswith(f"baseline: {file.name} does not exist, so nothing is excused")
    (option,) = re.findall(r"add (--[a-z-]+) REASON", last_line(out))
    assert not file.exists(), "nothing is excused that nobody asked for"
    code, out, _ = command(*words, option, "known", cwd=tmp_path)
    assert code == 0, out
    assert "host-missing" in file.read_text()
    code, out, _ = command(*words, cwd=tmp_path)
    assert code == 0, out
    assert "does not exist" not in out
