"""The GitHub action and the GitLab template: right by their schemas, and their steps do run."""

from __future__ import annotations

import importlib.resources
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared.ci_runners import (
    SPEC,
    TEMPLATE,
    GitHubJob,
    gitlab_job,
    run_gitlab_job,
)
from httpmark.harness.tests.shared.native_server import listening
from httpmark.harness.tests.shared.repository import ACTION

FEW = "get-plain\nhost-missing\n"


def vendored(name: str) -> Any:
    """A schema that check-jsonschema carries."""
    folder = importlib.resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A project's folder, and beside it a bin with the command that is being tested."""
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "httpmark"
    command.write_text(
        f"#!{sys.executable}\nfrom httpmark.harness.command.cli import main\nmain()\n"
    )
    command.chmod(0o755)
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    return project


def own_server(port: str = "{port}") -> str:
    return f"{binaries.need('server')} --address 127.0.0.1 --port {port} --workers 1"


# --- GitHub ---------------------------------------------------------------------------------------


def act(here: Path, **given: str) -> tuple[int, dict[str, str], str, str]:
    """Use the action once in a job: exit code, outputs, log and summary."""
    job = GitHubJob(here, here.parent / "bin")
    done = job.use(**given)
    return done.code, done.outputs, done.log, job.summary.read_text()


def test_the_action_is_one_by_its_schema() -> None:
    jsonschema.validate(ACTION, vendored("github-actions"))


def test_no_input_is_part_of_a_script() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"


@pytest.mark.process
def test_the_action_passes_a_good_server_it_starts_itself(here: Path) -> None:
    code, outputs, log, summary = act(
        here, version="installed", command=own_server(), suite="rfc\n", case=FEW, path="/hello",
        post_path="/body", host="a.example", header="X-Key: k", fail_under="100",
    )  # fmt: skip
    assert code == 0, log
    assert "POST /body" in log
    assert "Host: a.example" in log
    assert outputs["verdict"] == "passed"
    assert outputs["exit-code"] == "0"
    assert json.loads(outputs["score"]) == {"rfc": 100.0}
    for name in ("report", "result-json", "sarif"):
        assert (here / outputs[name]).is_file()
    assert summary.startswith("what was there before\n## httpmark: passed")


@pytest.mark.process
def test_the_action_fails_a_bad_server_with_annotations(here: Path) -> None:
    (here / "known.toml").write_text("")
    with listening("null") as target:
        code, outputs, log, summary = act(
            here, version="installed", target=target, suite="rfc", case=FEW, baseline="known.toml",
            strict_baseline="true", report="out put",
        )  # fmt: skip
    assert code == 1
    assert outputs["verdict"] == "failed"
    assert re.search(r"^::error title=MUST RFC 9112 3\.2::target: ", log, re.MULTILINE)
    assert "## httpmark: failed" in summary
    assert "httpmark replay host-missing" in summary
    assert (here / "out put" / "results.sarif").is_file()


@pytest.mark.process
def test_the_action_says_what_is_wrong_and_runs_nothing_of_it(here: Path) -> None:
    code, outputs, log, _ = act(
        here, version="installed", target="http://127.0.0.1:1/", suite="$(touch evil)`touch evil`"
    )
    assert (code, outputs["verdict"], outputs["report"]) == (2, "usage", "")
    assert "unknown suite" in log
    assert not (here / "evil").exists()
    code, outputs, log, _ = act(here, version="installed", target="http://127.0.0.1:1/", case=FEW)
    assert (code, outputs["verdict"]) == (3, "unusable")
    assert "nothing answers there" in log


# --- GitLab ---------------------------------------------------------------------------------------


def pipe(here: Path, **given: str) -> tuple[int, str, dict[str, Any]]:
    """Run the template's job: exit code, log, and the job."""
    given = {"install": "installed", **given}
    done = run_gitlab_job(here, here.parent / "bin", **given)
    return done.code, done.log, gitlab_job(**given)[1]


def test_the_job_is_one_by_its_schema() -> None:
    name, words = gitlab_job(install="installed", job="http", header="X-Key: $KEY")
    assert "default" not in SPEC["install"], "GitLab itself then asks for it"
    jsonschema.Draft7Validator(vendored("gitlab-ci")).validate({name: words})


def test_every_input_of_the_template_is_used() -> None:
    used = set(re.findall(r"inputs\.([a-z-]+)", TEMPLATE.partition("\n---\n")[2]))
    assert used == set(SPEC)


@pytest.mark.process
def test_the_template_judges_and_leaves_its_artifacts(here: Path) -> None:
    (here / "httpmark.toml").write_text('[check]\ncase = ["get-plain", "host-missing"]\n')
    code, log, words = pipe(
        here, command=own_server(), suite="rfc", path="/hello", post_path="/body", fail_under="100"
    )
    assert code == 0, log
    assert "POST /body" in log
    assert words["allow_failure"] == {"exit_codes": [4]}
    artifacts = words["artifacts"]
    junit, speed = artifacts["reports"].pop("junit")
    for path in (*artifacts["paths"], *artifacts["reports"].values(), junit):
        assert (here / path).exists(), path
    assert not (here / speed).exists()
    with listening("null") as target:
        code, log, _ = pipe(here, target=target, suite="rfc", report="other", job="conformance")
    assert code == 1
    assert "GATE failed, exit code 1" in log
    assert (here / "other" / "codequality.json").stat().st_size > 100


@pytest.mark.process
def test_the_template_says_what_is_wrong(here: Path) -> None:
    code, log, _ = pipe(here)
    assert code == 2
    assert "name a TARGET" in log
    for word in ("", "httpmark", "httpmark==1.0"):
        code, log, _ = pipe(here, install=word, target="http://127.0.0.1:1/")
        assert (code, "does not say where to install from" in log) == (2, True)


# --- speed, against another commit ----------------------------------------------------------------


def committed(here: Path) -> None:
    """A project of two commits: the server that is built is the same, but for its name."""
    (here / ".git").rmdir()

    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=here, check=True,
            capture_output=True, timeout=60,
        )  # fmt: skip

    git("init", "-q", "-b", "main")
    for number in (1, 2):
        server = own_server('"$1"')
        (here / "server.sh").write_text(f"#!/bin/sh\n# {number}\nexec {server}\n")
        git("add", "server.sh")
        git("commit", "-q", "-m", f"{number}")
    (here / "httpmark.toml").write_text(
        f'[check]\nsuite = "rfc"\ncase = {json.dumps(FEW.split())}\n'
        "[compare]\npairs = 3\nmargin = 100\n"
    )


BUILD = "cp server.sh built.sh && chmod +x built.sh"


@pytest.mark.first
@pytest.mark.process
@pytest.mark.timeout(300)
def test_the_action_holds_the_speed_against_another_commit(here: Path) -> None:
    committed(here)
    subprocess.run(["sh", "-e", "-c", BUILD], cwd=here, check=True, timeout=10)
    code, outputs, log, summary = act(
        here, version="installed", command="./built.sh {port}", against="main~1", build=BUILD
    )
    assert outputs["verdict"] == "passed", log
    (base,) = (here.parent / "runner-temp").glob("httpmark-base.*")
    assert (base / "built.sh").read_text().startswith("#!/bin/sh\n# 1\n")
    found = json.loads((here / "httpmark-report" / "speed.json").read_text())
    assert "httpmark-base" in found["base"]
    assert outputs["speed"] == found["verdict"] in ("pass", "inconclusive", "fail")
    assert code == (1 if outputs["speed"] == "fail" else 0)
    assert "is no worse than that of" in summary
    assert (here / "httpmark-report" / "speed.xml").is_file()


STUB = """#!/bin/sh
[ "$1" = compare ] || exit 0
echo "$@" >> "$LOG"
while [ $# -gt 1 ]; do
  case "$1" in --junit|--sarif|--summary) echo told > "$2" ;; esac
  shift
done
echo '{"verdict": "'$SPEED'"}'
exit $CODE
"""


@pytest.mark.process
@pytest.mark.parametrize(("speed", "code"), [("pass", 0), ("fail", 1), ("inconclusive", 4)])
@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_speed_is_one_of_three(
    here: Path, monkeypatch: pytest.MonkeyPatch, forge: str, speed: str, code: int
) -> None:
    """What the steps ask of the command, and what becomes of each of its answers."""
    committed(here)
    stub, log = here.parent / "bin" / "httpmark", here.parent / "asked"
    stub.write_text(STUB)
    (here / "out").mkdir()
    for name, value in (("LOG", str(log)), ("SPEED", speed), ("CODE", str(code))):
        monkeypatch.setenv(name, value)
    ask = {"command": "./s.sh {port}", "against": "main~1", "inconclusive": "fail", "report": "out"}
    if forge == "github":
        found, outputs, _, summary = act(here, version="installed", profile="keepalive", **ask)
        assert outputs["speed"] == speed
        assert "told" in summary
        (place,) = (here.parent / "runner-temp").glob("httpmark-base.*")
    else:
        found, _, words = pipe(here, profile="keepalive", **ask)
        assert words["artifacts"]["reports"]["junit"][1] == "out/speed.xml"
        place = here / ".httpmark-base"
    assert found == code
    (line,) = log.read_text().splitlines()
    assert line.startswith(f"compare env -C '{place}' ./s.sh {{port}} ./s.sh {{port}} --quick")
    assert "--profile keepalive" in line
    assert "--inconclusive fail" in line
    assert (here / "out" / "speed.xml").exists()


@pytest.mark.process
@pytest.mark.parametrize(
    ("ask", "said"),
    [
        ({"against": "nowhere"}, "no commit 'nowhere'"),
        ({"against": "--exec=touch evil"}, "is not a git ref"),
        ({"against": "main~1", "build": "false"}, "the build of main~1 failed"),
        ({"against": "main~1", "command": ""}, "name the command"),
    ],
)
@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_what_cannot_be_compared_is_said(
    here: Path, forge: str, ask: dict[str, str], said: str
) -> None:
    committed(here)
    (here.parent / "bin" / "httpmark").write_text("#!/bin/sh\nexit 0\n")
    ask = {"command": "./s.sh {port}", **ask}
    if forge == "github":
        code, _, log, _ = act(here, version="installed", **ask)
    else:
        code, log, _ = pipe(here, **ask)
    assert (code, said in log) == (2, True), log
    assert not (here / "evil").exists()


@pytest.mark.process
def test_a_command_runs_in_an_image_that_is_named(here: Path) -> None:
    docker = here.parent / "bin" / "docker"
    docker.write_text(f'#!/bin/sh\necho "$@" >> {here}/asked\nshift 6\nexec "$@"\n')
    docker.chmod(0o755)
    code, outputs, log, _ = act(
        here, version="installed", image="ours:1", command=own_server(), suite="rfc", case=FEW
    )
    assert (code, outputs["verdict"]) == (0, "passed"), log
    assert (here / "asked").read_text().startswith("run --rm --init --network host ours:1 ")


@pytest.mark.process
@pytest.mark.parametrize("word", ["0.1", "httpmark", "latest"])
def test_no_name_is_looked_up_in_a_registry(here: Path, word: str) -> None:
    code, _, log, _ = act(here, version=word)
    assert (code, "does not say where to install from" in log) == (2, True)
