"""The runners of GitHub and GitLab, as far as an action or a template can tell.

What they do with inputs, variables, shells and the files that pass values on is what their
documentation says; the shell lines themselves are those of ``action.yml`` and ``ci/gitlab.yml``.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import yaml

from httpmark.harness.tests.shared.repository import ACTION, ROOT

TEMPLATE = (ROOT / "ci" / "gitlab.yml").read_text("utf-8")
SPEC: dict[str, Any] = yaml.safe_load(TEMPLATE.partition("\n---\n")[0])["spec"]["inputs"]
TIMEOUT_S = 280


class Done(msgspec.Struct, frozen=True):
    """What a use of the action, or a job, left."""

    code: int
    log: str
    outputs: dict[str, str] = {}


class GitHubJob:
    """A job that may use the action several times: its variables and files live as long as it.

    :param here: the checked out project.
    :param tools: a folder whose commands come first.
    """

    def __init__(self, here: Path, tools: Path, **variables: str) -> None:
        self.here = here
        self.temp = here.parent / "runner-temp"
        self.temp.mkdir(exist_ok=True)
        self.summary = self.temp / "summary"
        self.summary.write_text("what was there before\n")
        self.variables = {**_own(), "PATH": f"{tools}:{os.environ['PATH']}", **variables}
        # What github.* expressions of the action are.
        self.github = {"server_url": "", "action_repository": "", "action_ref": ""}

    def use(self, **given: str) -> Done:
        """Run the action's steps one after the other, as long as they succeed."""
        inputs = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        assert set(inputs) == set(ACTION["inputs"]), given
        steps: dict[str, dict[str, str]] = {}
        log, code = "", 0
        for step in ACTION["runs"]["steps"]:
            code, said, steps[step["id"]] = self._run(step, inputs, steps)
            log += said
            if code:
                break
        outputs = {
            name: self._filled(one["value"], inputs, steps)
            for name, one in ACTION["outputs"].items()
        }
        return Done(code, log, outputs)

    def _run(
        self, step: dict[str, Any], inputs: dict[str, str], steps: dict[str, dict[str, str]]
    ) -> tuple[int, str, dict[str, str]]:
        assert step["shell"] == "bash"
        files = {name: self.temp / name.lower() for name in ("OUTPUT", "ENV", "PATH", "SCRIPT")}
        for file in files.values():
            file.write_text("")
        files["SCRIPT"].write_text(step["run"])
        own = {
            name: self._filled(text, inputs, steps) for name, text in step.get("env", {}).items()
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", files["SCRIPT"]],
            cwd=self.here, text=True, capture_output=True, timeout=TIMEOUT_S, check=False,
            stdin=subprocess.DEVNULL,
            env={
                **self.variables, **own, "GITHUB_ACTIONS": "true", "RUNNER_TEMP": str(self.temp),
                "GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_ACTION_PATH": str(ROOT),
                **{f"GITHUB_{name}": str(files[name]) for name in ("OUTPUT", "ENV", "PATH")},
            },
        )  # fmt: skip
        self.variables |= _values(files["ENV"])
        for folder in files["PATH"].read_text().splitlines():
            self.variables["PATH"] = f"{folder}:{self.variables['PATH']}"
        return done.returncode, done.stdout + done.stderr, _values(files["OUTPUT"])

    def _filled(self, text: str, inputs: dict[str, str], steps: dict[str, dict[str, str]]) -> str:
        def value(match: re.Match[str]) -> str:
            place, *names = match[1].strip().split(".")
            if place in ("inputs", "github"):
                return (inputs if place == "inputs" else self.github)[names[0]]
            assert (place, names[1]) == ("steps", "outputs"), match[0]
            return steps.get(names[0], {}).get(names[2], "")

        return re.sub(r"\$\{\{(.*?)\}\}", value, text)


def _own() -> dict[str, str]:
    """This process's variables, without those that say that it runs in CI itself."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GITHUB", "CI"))}
    return kept | {"CI": "true"}


def _values(file: Path) -> dict[str, str]:
    """What a step wrote for later ones: ``name=value``, or ``name<<END`` and lines until END."""
    found: dict[str, str] = {}
    lines = iter(file.read_text().splitlines())
    for line in lines:
        name, mark, end = line.partition("<<")
        if mark and "=" not in name:
            found[name] = "\n".join(iter(lambda: next(lines), end))
        else:
            name, _, found[line.partition("=")[0]] = line.partition("=")
    return found


def gitlab_job(**given: str) -> tuple[str, dict[str, Any]]:
    """The job that including the template with these inputs makes: its name and its words."""
    inputs = {name: str((one or {}).get("default", "")) for name, one in SPEC.items()}
    inputs |= {name.replace("_", "-"): value for name, value in given.items()}
    assert set(inputs) == set(SPEC), given
    body = re.sub(
        r"\$\[\[ inputs\.([a-z-]+) \]\]", lambda match: inputs[match[1]],
        TEMPLATE.partition("\n---\n")[2],
    )  # fmt: skip
    ((name, words),) = yaml.safe_load(body).items()
    return name, words


# How the runner begins: it takes bash where the image has it, else sh.
GITLAB_SHELLS = {"bash": "set -eo pipefail; set +o noclobber\n", "sh": "set -e\n"}


def run_gitlab_job(here: Path, tools: Path, *, shell: str = "sh", **given: str) -> Done:
    """Run a job's scripts in one shell, as the runner does."""
    _, words = gitlab_job(**{"install": "installed", **given})
    variables = {
        name: one["value"] if isinstance(one, dict) else one
        for name, one in words["variables"].items()
    }
    script = GITLAB_SHELLS[shell] + "\n".join((*words["before_script"], *words["script"]))
    done = subprocess.run(
        [shell, "-c", ': | eval "$SCRIPT_OF_THE_JOB"'], cwd=here, text=True, capture_output=True,
        timeout=TIMEOUT_S, check=False, stdin=subprocess.DEVNULL,
        env={
            **_own(), "PATH": f"{tools}:{os.environ['PATH']}", **variables,
            "SCRIPT_OF_THE_JOB": script,
        },
    )  # fmt: skip
    return Done(done.returncode, done.stdout + done.stderr)
