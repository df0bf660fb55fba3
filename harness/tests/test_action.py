"""The GitHub action and the GitLab template: right by their schemas, and their steps do run."""

from __future__ import annotations

import importlib.resources
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from httpmark.harness import binaries

from .made_check import listening
from .test_house import ROOT

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
    command.write_text(f"#!{sys.executable}\nfrom httpmark.harness.cli import main\nmain()\n")
    command.chmod(0o755)
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    return project


def environment(here: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GITHUB", "CI"))}
    return kept | {"CI": "true", "PATH": f"{here.parent / 'bin'}:{os.environ['PATH']}"}


def own_server() -> str:
    return f"{binaries.need('server')} --address 127.0.0.1 --port {{port}} --workers 1"


# --- GitHub ---------------------------------------------------------------------------------------

ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))


def filled(text: str, inputs: dict[str, str], steps: dict[str, dict[str, str]]) -> str:
    def value(match: re.Match[str]) -> str:
        place, *names = match[1].strip().split(".")
        if place == "inputs":
            return inputs[names[0]]
        assert (place, names[1]) == ("steps", "outputs"), match[0]
        return steps.get(names[0], {}).get(names[2], "")

    return re.sub(r"\$\{\{(.*?)\}\}", value, text)


def act(here: Path, **given: str) -> tuple[int, dict[str, str], str, str]:
    """Run the action's steps as a runner does: exit code, outputs, log and summary."""
    inputs = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
    inputs |= {name.replace("_", "-"): value for name, value in given.items()}
    assert set(inputs) == set(ACTION["inputs"])
    steps: dict[str, dict[str, str]] = {}
    summary = here.parent / "summary.md"
    summary.write_text("what was there before\n")
    log, code = "", 0
    for step in ACTION["runs"]["steps"]:
        output = here.parent / "output"
        output.write_text("")
        own = {name: filled(text, inputs, steps) for name, text in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=here, text=True, capture_output=True, timeout=280, check=False,
            stdin=subprocess.DEVNULL,
            env={
                **environment(here), **own, "GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(summary), "RUNNER_TEMP": str(here.parent),
                "GITHUB_ACTION_PATH": str(ROOT),
            },
        )  # fmt: skip
        log += done.stdout + done.stderr
        lines = output.read_text().splitlines()
        steps[step["id"]] = dict(line.split("=", 1) for line in lines)
        code = done.returncode
        if code:
            break
    outputs = {name: filled(one["value"], inputs, steps) for name, one in ACTION["outputs"].items()}
    return code, outputs, log, summary.read_text()


def test_the_action_is_one_by_its_schema() -> None:
    jsonschema.validate(ACTION, vendored("github-actions"))


def test_no_input_is_part_of_a_script() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"


def test_the_action_passes_a_good_server_it_starts_itself(here: Path) -> None:
    code, outputs, log, summary = act(
        here, version="installed", command=own_server(), suite="rfc\n", case=FEW
    )
    assert code == 0, log
    assert outputs["verdict"] == "passed"
    assert outputs["exit-code"] == "0"
    assert json.loads(outputs["score"]) == {"rfc": 100.0}
    for name in ("report", "result-json", "sarif"):
        assert (here / outputs[name]).is_file()
    assert summary.startswith("what was there before\n## httpmark: passed")


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

TEMPLATE = (ROOT / "ci" / "gitlab.yml").read_text("utf-8")
SPEC = yaml.safe_load(TEMPLATE.partition("\n---\n")[0])["spec"]["inputs"]


def job(**given: str) -> tuple[str, dict[str, Any]]:
    inputs = {name: str((one or {}).get("default", "")) for name, one in SPEC.items()} | given
    assert set(inputs) == set(SPEC)
    body = re.sub(
        r"\$\[\[ inputs\.([a-z]+) \]\]", lambda match: inputs[match[1]],
        TEMPLATE.partition("\n---\n")[2],
    )  # fmt: skip
    made = yaml.safe_load(body)
    jsonschema.Draft7Validator(vendored("gitlab-ci")).validate(made)
    ((name, words),) = made.items()
    return name, words


def pipe(here: Path, **given: str) -> tuple[int, str, dict[str, Any]]:
    """Run a job's scripts as a runner does: exit code, log, and the job."""
    _, words = job(install="", **given)
    values = {
        name: one["value"] if isinstance(one, dict) else one
        for name, one in words["variables"].items()
    }
    script = "\n".join((*words["before_script"], *words["script"]))
    done = subprocess.run(
        ["sh", "-e", "-c", script], cwd=here, text=True, capture_output=True, timeout=280,
        check=False, stdin=subprocess.DEVNULL, env=environment(here) | values,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr, words


def test_every_input_of_the_template_is_used() -> None:
    used = set(re.findall(r"inputs\.([a-z]+)", TEMPLATE.partition("\n---\n")[2]))
    assert used == set(SPEC)


def test_the_template_judges_and_leaves_its_artifacts(here: Path) -> None:
    (here / "httpmark.toml").write_text('[check]\ncase = ["get-plain", "host-missing"]\n')
    code, log, words = pipe(here, command=own_server(), suite="rfc")
    assert code == 0, log
    assert words["allow_failure"] == {"exit_codes": [4]}
    artifacts = words["artifacts"]
    for path in (*artifacts["paths"], *artifacts["reports"].values()):
        assert (here / path).exists(), path
    with listening("null") as target:
        code, log, _ = pipe(here, target=target, suite="rfc", report="other", job="conformance")
    assert code == 1
    assert "GATE failed, exit code 1" in log
    assert (here / "other" / "codequality.json").stat().st_size > 100


def test_the_template_says_what_is_wrong(here: Path) -> None:
    code, log, _ = pipe(here)
    assert code == 2
    assert "name a TARGET" in log
