"""Commands are found by their files, and asking for help imports nothing heavy."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import click
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.command import known_commands, options, run_argument
from httpmark.harness.http import address
from httpmark.harness.model.errors import HarnessError

HEAVY = ("jinja2", "h11", "hypothesis", "docker", "sqlite3", "rich", "trustme")
_HELP = """
import sys
from httpmark.harness.command import cli
try:
    cli.main()
except SystemExit:
    print(*sys.modules)
"""


def test_a_command_is_called_like_its_file() -> None:
    found = {name: known_commands.load(name).name for name in known_commands.names()}
    assert {"run", "check", "bench", "compare", "report", "doctor"} <= set(found)
    assert all(name == called for name, called in found.items()), found


def test_every_option_says_what_it_does() -> None:
    lacking = [
        f"{name} {parameter.opts}"
        for name in known_commands.names()
        for parameter in known_commands.load(name).params
        if isinstance(parameter, click.Option) and not (parameter.help or "").strip()
    ]
    assert not lacking, lacking


def test_short_help_is_one_whole_sentence_in_80_columns() -> None:
    short = {
        name: known_commands.load(name).get_short_help_str(66) for name in known_commands.names()
    }
    assert not {name: text for name, text in short.items() if text.endswith("...")}


@pytest.mark.process
def test_help_imports_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _HELP, "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("Usage: httpmark")
    assert not set(HEAVY) & set(done.stdout.splitlines()[-1].split())


def test_the_help_of_fuzz_names_the_folder_that_finds_go_into() -> None:
    [out] = [one for one in known_commands.load("fuzz").params if one.name == "out"]
    assert isinstance(out, click.Option)
    assert f"${loading.FOUND_SET} names, else {loading.FOUND}" in (out.help or "")


def test_words_of_a_heavy_module_are_looked_up_when_needed() -> None:
    asked: list[int] = []

    def known() -> tuple[str, ...]:
        asked.append(1)
        return ("a", "b")

    choice = options.ChoiceOf(known)
    assert not asked
    assert choice.convert("a", None, None) == "a"
    assert tuple(choice.choices) == ("a", "b")
    assert len(asked) == 1


def test_help_lists_forms_of_target_that_are_read_as_it_says() -> None:
    text = inspect.cleandoc(known_commands.load("check").help or "")
    rows = dict(
        re.findall(r"^  (\S+)  +(\S.*)$", text.partition("TARGET is")[2].partition("With")[0], re.M)
    )
    read = {form: address.read(form, allow_remote="needs" in said) for form, said in rows.items()}
    assert len(read) >= 8
    assert {one.tls for one in read.values()} == {True, False}
    assert [form for form, one in read.items() if one.unix] == ["unix:/run/server.sock"]
    assert {one.path for one in read.values()} == {"/", "/health", ""}
    assert "::1" in {one.address for one in read.values()}
    assert read["localhost:8080"].host == "localhost:8080"
    for form, said in rows.items():
        if "needs --allow-remote" in said:
            with pytest.raises(HarnessError, match="--allow-remote"):
                address.read(form, allow_remote=False)


def test_latest_names_a_run_wherever_one_is_asked() -> None:
    asked = {
        name
        for name in known_commands.names()
        for parameter in known_commands.load(name).params
        if parameter.metavar == "RUN" and isinstance(parameter.type, run_argument.RunFolder)
    }
    assert asked == {"check", "export", "findings", "judge", "published", "report", "run"}
    asked_otherwise = {
        f"{name} {parameter.name}"
        for name in known_commands.names()
        for parameter in known_commands.load(name).params
        if parameter.metavar == "RUN" and not isinstance(parameter.type, run_argument.RunFolder)
    }
    assert not asked_otherwise
