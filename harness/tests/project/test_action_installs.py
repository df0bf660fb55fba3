"""How the action and the template install httpmark: once, and compiled only where no wheel fits.

``pip`` is a stand-in that says what it was asked, so nothing is built or fetched here;
test_packaging builds a wheel for real.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.tests.shared.ci_runners import Done, GitHubJob, run_gitlab_job
from httpmark.harness.tests.shared.repository import ROOT

pytestmark = pytest.mark.process

# The `httpmark` that is installed: it says its arguments, and leaves the files that it would.
HTTPMARK = """#!/bin/sh
printf '%s\\n' "httpmark $*" >> "$ASKED"
[ "$1" != --version ] || { echo 'httpmark, version 9'; exit 0; }
place=''
while [ $# -gt 0 ]; do
  if [ "$1" = --outputs ]; then place="$2"; fi
  shift
done
if [ -n "$place" ]; then
  [ ! -e "$place/result.json" ] || { echo "$place holds a run already"; exit 2; }
  mkdir -p "$place"
  echo '{"servers": [{"compliance": {"suites": {}}}]}' > "$place/result.json"
  echo told > "$place/summary.md"
fi
"""
# A wheel "fits" if its name has the word; one that pip builds always does.
PIP = """#!/bin/sh
printf '%s\\n' "pip $*" >> "$ASKED"
bin=$(dirname "$0")
for last; do :; done
into='' from=''
while [ $# -gt 0 ]; do
  case "$1" in
    --dest|--wheel-dir) into="$2" ;;
    --find-links) from="$2" ;;
  esac
  case "$1" in download|wheel|install) verb="$1" ;; esac
  shift
done
case "$verb" in
  download)
    for wheel in "$from"/httpmark-*fits*.whl; do
      [ ! -e "$wheel" ] || { mkdir -p "$into"; cp "$wheel" "$into"; exit 0; }
    done
    exit 1 ;;
  wheel) mkdir -p "$into"; echo built > "$into/httpmark-9-fits.whl" ;;
  install)
    case "$last" in *fits*.whl) ;; *) echo "$last is not a wheel that fits" >&2; exit 1 ;; esac
    [ -e "$last" ] || exit 1
    for name in httpmark httpmark-probe httpmark-server; do
      cp "$HTTPMARK_STAND_IN" "$bin/$name"
    done
    case "$last" in *starts_nothing*) echo 'exit 127' > "$bin/httpmark-probe" ;; esac ;;
esac
"""
PYTHON = """#!/bin/sh
case "$1" in
  -m) [ "$2" = venv ] || exit 9
      echo venv >> "$ASKED"
      mkdir -p "$3/bin"; cp "$PIP_STAND_IN" "$3/bin/pip" ;;
  -c) [ -z "$OLD_PYTHON" ] || exit 1 ;;
  *) exec {python} "$@" ;;
esac
"""


class Machine(msgspec.Struct, frozen=True):
    """A runner whose python3 and pip are stand-ins, and what they were asked."""

    here: Path
    bin: Path
    variables: dict[str, str]

    def job(self, **variables: str) -> GitHubJob:
        return GitHubJob(self.here, self.bin, **{**self.variables, **variables})

    def asked(self) -> list[str]:
        file = Path(self.variables["ASKED"])
        return file.read_text().splitlines() if file.exists() else []

    def asked_of_pip(self, verb: str) -> list[str]:
        return [line for line in self.asked() if re.match(rf"pip .*\b{verb}\b", line)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python3"
    for file, text in (
        (tools / "httpmark", HTTPMARK),
        (tools / "pip", PIP),
        (python, PYTHON.replace("{python}", sys.executable)),
    ):
        file.write_text(text)
        file.chmod(0o755)
    here = tmp_path / "project"
    here.mkdir()
    variables = {
        "ASKED": str(tmp_path / "asked"),
        "HTTPMARK_STAND_IN": str(tools / "httpmark"),
        "PIP_STAND_IN": str(tools / "pip"),
        "OLD_PYTHON": "",
    }
    return Machine(here, tmp_path / "bin", variables)


def test_the_action_works_twice_in_a_job_and_is_installed_once(machine: Machine) -> None:
    job = machine.job()
    first = job.use(command="./a {port}")
    second = job.use(command="./b {port}")
    third = job.use(command="./c {port}", report="other")
    for done, folder in (
        (first, "httpmark-report"), (second, "httpmark-report-2"), (third, "other"),
    ):  # fmt: skip
        assert (done.code, done.outputs["verdict"]) == (0, "passed"), done.log
        assert done.outputs["result-json"] == f"{folder}/result.json"
        assert (machine.here / folder / "result.json").is_file()
    assert machine.asked().count("venv") == 1
    assert len(machine.asked_of_pip("wheel")) == len(machine.asked_of_pip("install")) == 1
    assert job.summary.read_text() == "what was there before\ntold\ntold\ntold\n"


def test_every_input_of_the_check_reaches_it(machine: Machine) -> None:
    done = machine.job().use(
        target="http://127.0.0.1:1/", path="/a b", post_path="/items", host="a.example",
        header="X-Key: k 1\nX-Other: $(touch evil)\n", fail_under="95", suite="rfc\nsmuggling",
    )  # fmt: skip
    assert done.code == 0, done.log
    (line,) = (line for line in machine.asked() if line.startswith("httpmark check"))
    assert line.startswith(
        "httpmark check http://127.0.0.1:1/ --path /a b --post-path /items --host a.example "
        "--header X-Key: k 1 --header X-Other: $(touch evil) --suite rfc --suite smuggling "
        "--fail-under 95 --quick --out "
    )
    assert not (machine.here / "evil").exists()


def test_what_is_not_given_is_not_passed_on(machine: Machine) -> None:
    machine.job().use(target="http://127.0.0.1:1/")
    (line,) = (line for line in machine.asked() if line.startswith("httpmark check"))
    assert re.fullmatch(
        "httpmark check http://127.0.0.1:1/ --quick --out [^ ]*/httpmark-run[.][^ ]* "
        "--outputs httpmark-report",
        line,
    )


def test_a_wheel_that_fits_is_installed_and_nothing_is_compiled(machine: Machine) -> None:
    (machine.here / "wheels").mkdir()
    (machine.here / "wheels" / "httpmark-9-fits.whl").write_text("given")
    done = machine.job().use(target="http://127.0.0.1:1/", wheels="wheels")
    assert done.code == 0, done.log
    assert "a wheel fits, from wheels" in done.log
    assert not machine.asked_of_pip("wheel")
    (asked,) = machine.asked_of_pip("download")
    assert "--no-index" in asked, "a name alone is never looked up in a registry"
    assert re.search(r"httpmark==\d+\.\d+\.\d+$", asked), "and only this version"


def test_a_wheel_that_does_not_fit_is_compiled_and_kept_for_the_next_job(machine: Machine) -> None:
    (machine.here / "wheels").mkdir()
    (machine.here / "wheels" / "httpmark-9-another_machine.whl").write_text("given")
    first = machine.job().use(target="http://127.0.0.1:1/", wheels="wheels")
    assert first.code == 0, first.log
    assert "httpmark is compiled" in first.log
    assert len(machine.asked_of_pip("wheel")) == 1
    kept = list((machine.here / "wheels").glob("*/httpmark-9-fits.whl"))
    assert len(kept) == 1
    later = machine.job()  # another runner, with the folder from a cache
    later.temp = machine.here.parent / "another-temp"
    later.temp.mkdir()
    second = later.use(target="http://127.0.0.1:1/", wheels="wheels", report="again")
    assert second.code == 0, second.log
    assert "a wheel of these sources fits" in second.log
    assert len(machine.asked_of_pip("wheel")) == 1, "it is compiled once"


def test_a_wheel_whose_programs_do_not_start_is_compiled(machine: Machine) -> None:
    """Its name fits, and a library that they were linked with is lacking."""
    (machine.here / "wheels").mkdir()
    (machine.here / "wheels" / "httpmark-9-fits-starts_nothing.whl").write_text("given")
    done = machine.job().use(target="http://127.0.0.1:1/", wheels="wheels")
    assert done.code == 0, done.log
    assert "httpmark is compiled" in done.log
    assert "httpmark-9-fits.whl" in machine.asked_of_pip("install")[-1]


def tagged(folder: Path) -> tuple[str, str]:
    """A repository whose release is a commit, and a later commit without one."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=folder, check=True,
            capture_output=True, text=True, timeout=60,
        ).stdout.strip()  # fmt: skip

    folder.mkdir(parents=True)
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "1")
    git("tag", "-a", f"v{version[1]}", "-m", "a release")
    git("tag", "v0")
    released = git("rev-parse", "HEAD")
    git("commit", "-q", "--allow-empty", "-m", "2")
    wheels = folder / "releases" / "expanded_assets" / f"v{version[1]}"
    wheels.mkdir(parents=True)
    (wheels / "httpmark-9-fits.whl").write_text("of the release")
    return released, git("rev-parse", "HEAD")


def test_the_wheel_of_a_release_is_taken_for_its_own_commit_alone(machine: Machine) -> None:
    """However that commit is named; the commit that is pinned is the commit that judges."""
    server = machine.here.parent / "server"
    released, later = tagged(server / "owner" / "httpmark")
    version = next((server / "owner/httpmark/releases/expanded_assets").iterdir()).name
    for number, (ref, fits) in enumerate(
        ((version, True), ("v0", True), (released, True), (later, False), ("main", False),
         ("", False))
    ):  # fmt: skip
        job = machine.job()
        job.temp = machine.here.parent / f"temp-{number}"
        job.temp.mkdir()
        job.github = {
            "server_url": str(server), "action_repository": "owner/httpmark", "action_ref": ref,
        }  # fmt: skip
        done = job.use(target="http://127.0.0.1:1/", report=f"report-{number}")
        assert done.code == 0, done.log
        assert ("the wheel of its release fits" in done.log) == fits, (ref, done.log)
        assert ("httpmark is compiled" in done.log) != fits


def test_a_machine_that_cannot_run_it_gets_one_line(machine: Machine) -> None:
    done = machine.job(OLD_PYTHON="yes").use(target="http://127.0.0.1:1/")
    assert done.code == 3
    assert done.log == (
        "::error::httpmark needs Python 3.11 or newer as python3; add actions/setup-python before "
        "this step\n"
    )
    (machine.bin / "uname").write_text("#!/bin/sh\necho Darwin\n")
    (machine.bin / "uname").chmod(0o755)
    done = machine.job().use(target="http://127.0.0.1:1/")
    assert done.code == 3
    assert done.log == "::error::httpmark runs on Linux; choose runs-on: ubuntu-24.04\n"


# --- GitLab ---------------------------------------------------------------------------------------


def gitlab(machine: Machine, monkeypatch: pytest.MonkeyPatch, shell: str, **given: str) -> Done:
    for name, value in machine.variables.items():
        monkeypatch.setenv(name, value)
    given = {"install": "git+https://host.example/group/httpmark@abc", **given}
    return run_gitlab_job(machine.here, machine.bin, shell=shell, **given)


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_the_template_compiles_once_and_asks_what_it_is_told(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    ask = {
        "target": "http://127.0.0.1:1/", "path": "/a b", "post_path": "/items",
        "host": "a.example", "header": "X-Key: k 1", "fail_under": "95", "suite": "rfc smuggling",
    }  # fmt: skip
    done = gitlab(machine, monkeypatch, shell, **ask)
    assert done.code == 0, done.log
    assert "httpmark is compiled" in done.log
    (line,) = (line for line in machine.asked() if line.startswith("httpmark check"))
    words, _, folders = line.partition(" --out ")
    assert words == (
        "httpmark check --quick --inconclusive fail http://127.0.0.1:1/ --path /a b "
        "--post-path /items --host a.example --header X-Key: k 1 --fail-under 95 --suite rfc "
        "--suite smuggling"
    )
    assert re.fullmatch("/[^ ]+ --outputs httpmark-report", folders)
    # The next job begins with the cache and nothing else.
    again = gitlab(machine, monkeypatch, shell, target="http://127.0.0.1:1/", report="again")
    assert again.code == 0, again.log
    assert "compiled" not in again.log
    assert len(machine.asked_of_pip("wheel")) == 1
    other = gitlab(
        machine, monkeypatch, shell, target="http://127.0.0.1:1/", report="third",
        install="git+https://host.example/group/httpmark@def",
    )  # fmt: skip
    assert other.code == 0, other.log
    assert len(machine.asked_of_pip("wheel")) == 2, "another commit is another wheel"
    assert len(list((machine.here / ".httpmark-wheels").iterdir())) == 1, "the cache does not grow"


def test_the_template_says_in_one_line_what_the_image_lacks(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = msgspec.structs.replace(machine, variables={**machine.variables, "OLD_PYTHON": "yes"})
    done = gitlab(old, monkeypatch, "sh", target="http://127.0.0.1:1/")
    assert done.code == 3
    assert done.log == (
        "httpmark needs Python 3.11 or newer as python3; choose an image that has it\n"
    )
