"""The configuration file: the options are its keys, mistakes name the nearest, the command line
wins."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
from click.testing import CliRunner

from httpmark.harness.catalogue import loading
from httpmark.harness.command import cli, configuration, known_commands
from httpmark.harness.gate import baseline, findings
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.servers import brought
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.repository import ROOT

COMMANDS = known_commands.configurable()


def defaults(
    folder: Path, text: str, *, name: str = "httpmark.toml", command: str = "check"
) -> Any:
    (folder / name).write_text(text)
    found = configuration.find(folder)
    assert found is not None
    return configuration.defaults(found, command, COMMANDS)


def written(folder: Path, text: str) -> Path:
    path = folder / "httpmark.toml"
    path.write_text(text)
    return path


def test_the_options_are_the_keys(tmp_path: Path) -> None:
    text = """
    [check]
    target = "http://127.0.0.1:1/"
    suite = ["seed"]
    fail-under = 90
    strict-baseline = true
    baseline = "known.toml"
    ruleset = "seed"
    [run]
    suite = "seed"
    port = 8080
    """
    found = defaults(tmp_path, text)
    assert found == {
        "target": "http://127.0.0.1:1/",
        "suites": ("seed",),
        "fail_under": 90.0,
        "strict_baseline": True,
        "baseline_path": tmp_path / "known.toml",
        "ruleset": "seed",
    }
    assert defaults(tmp_path, text, command="run") == {"suites": ("seed",), "port": 8080}
    assert defaults(tmp_path, text, command="bench") == {}
    text = '[bench]\nserver = ["reference", "null"]\n[compare]\nbase = "a"\nhead = "b"'
    assert defaults(tmp_path, text, command="bench") == {"names": ("reference", "null")}
    assert defaults(tmp_path, text, command="compare") == {"base": "a", "head": "b"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[check]\nfail_under = 90", "unknown key 'fail_under': did you mean fail-under?"),
        ("[check]\nsuites = ['seed']", "did you mean suite?"),
        ("[check]\nxyzzy = 1", "known are"),
        ("[chek]\n", "unknown table 'chek': did you mean check?"),
        ("[check]\nupdate = true", "unknown key 'update'"),
        ("[check]\nallow-growth = 'why'", "unknown key 'allow-growth'"),
        ("[check]\nfail-under = 'much'", "[check] fail-under: must be a number, not 'much'"),
        ("[check]\nfail-under = 101", "101"),
        ("[check]\nfail-under = true", "must be a number"),
        ("[check]\nruleset = 'strict'", "'strict' is not one of"),
        ("[check]\nquick = 'yes'", "must be true or false"),
        ("[run]\nport = 1.5", "[run] port: must be a whole number"),
        ("[check]\nsuite = [1]", "must be a string"),
        ("[check]\nbaseline = 3", "must be a string"),
        ("check = 3", "must be a table"),
        ("[check", "not TOML"),
    ],
)
def test_every_mistake_says_where_and_what_is_meant(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(HarnessError) as error:
        defaults(tmp_path, text)
    assert said in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "httpmark.toml"))


def test_a_mistake_in_a_table_that_is_not_used_is_told_as_well(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="did you mean profile"):
        defaults(tmp_path, "[run]\nprofil = 'pipelined'\n[check]\nquick = true")


def test_servers_are_brought_in_the_folder_of_the_file(tmp_path: Path) -> None:
    text = """
    [run]
    server = ["mine=./build/mine -p {port}", "reference"]
    [server]
    other = "docker:other -p {port}"
    [server.third]
    from = "build/third -p {port}"
    capabilities = ["hello", "body"]
    """
    one = brought.Brought("mine", "./build/mine -p {port}", tmp_path)
    assert defaults(tmp_path, text, command="run") == {"names": (one, "reference")}
    found = configuration.find(tmp_path)
    assert found is not None
    field = brought.Field(configuration.stated(found))
    other, third = field.server("other").container, field.server("third")
    assert other is not None
    assert (other.image, other.args) == ("other", ("-p", "{port}"))
    assert third.process is not None
    assert third.process.binary == str(tmp_path / "build" / "third")
    assert third.capabilities == ("hello", "body")
    assert {"other", "third", "reference"} <= {server.name for server in field.servers()}
    assert defaults(tmp_path, text, command="check") == {}, "no command is called server"
    for wrong, said in (
        ("server = 3", "[server] must be a table, with a name for each server"),
        ("[server]\nmine = 3", "[server.mine] must be a string, as 'docker:TAG', or a table"),
    ):
        with pytest.raises(HarnessError) as error:
            defaults(tmp_path, wrong)
        assert str(error.value).startswith(f"{tmp_path / 'httpmark.toml'}: {said}")


def test_the_nearest_file_counts_and_the_repository_ends_the_search(tmp_path: Path) -> None:
    (tmp_path / "httpmark.toml").write_text("[check]\nquick = true\n")
    inner = tmp_path / "project" / "deep"
    inner.mkdir(parents=True)
    found = configuration.find(inner)
    assert found is not None
    assert found.path == tmp_path / "httpmark.toml"
    (tmp_path / "project" / "pyproject.toml").write_text("[tool.other]\n")
    assert configuration.find(inner) == found, "a pyproject without our table says nothing"
    (tmp_path / "project" / "pyproject.toml").write_text("[tool.httpmark.check]\nquick = true\n")
    nearer = configuration.find(inner)
    assert nearer is not None
    assert nearer.path.name == "pyproject.toml"
    assert configuration.defaults(nearer, "check", COMMANDS) == {"quick": True}
    (inner / ".git").mkdir()
    assert configuration.find(inner) is None


def test_a_mistake_in_pyproject_names_the_whole_table(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"\[tool\.httpmark\.check\]: unknown key 'sute'"):
        defaults(tmp_path, "[tool.httpmark.check]\nsute = 'seed'", name="pyproject.toml")
    with pytest.raises(HarnessError, match="must be a table"):
        defaults(tmp_path, "[tool]\nhttpmark = 3", name="pyproject.toml")


def test_the_schema_is_one_and_agrees_with_the_reader(tmp_path: Path) -> None:
    schema = configuration.schema(COMMANDS)
    jsonschema.Draft202012Validator.check_schema(schema)
    valid = jsonschema.Draft202012Validator(schema).is_valid
    for value, good in (
        ({"check": {"suite": "seed", "fail-under": 90, "quick": True}}, True),
        ({"check": {"suite": ["seed"]}, "run": {"port": 80}}, True),
        ({"check": {"fail_under": 90}}, False),
        ({"check": {"fail-under": 101}}, False),
        ({"check": {"ruleset": "strict"}}, False),
        ({"chek": {}}, False),
        ({"run": {"port": 0}}, False),
        ({"server": {"mine": "docker:a {port}", "other": {"from": "./b", "limits": {}}}}, True),
        ({"server": {"mine": {"fron": "./b"}}}, None),  # told where servers are needed
        ({"server": {"mine": 3}}, False),
    ):
        assert valid(value) is bool(good), value
        if good is None:
            continue
        source = configuration.Source(tmp_path / "x.toml", "", value)
        if good:
            configuration.defaults(source, "check", COMMANDS)
        else:
            with pytest.raises(HarnessError):
                configuration.defaults(source, "check", COMMANDS)


def test_every_option_of_a_configurable_command_can_be_configured() -> None:
    schema = configuration.schema(COMMANDS)
    assert {"check", "run", "bench"} <= set(schema["properties"])
    for name, command in COMMANDS.items():
        keys = set(schema["properties"][name]["properties"])
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                option = max(parameter.opts, key=len).removeprefix("--")
                assert (option in keys) is (option not in configuration._ONCE), option


def blocks(kind: str) -> list[tuple[str, str]]:
    """The TOML blocks of our documents that hold a word, with their page."""
    return [
        (page.name, block)
        for page in sorted((ROOT / "docs").glob("*.md"))
        for block in re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        if kind in block
    ]


def test_every_configuration_our_documents_show_is_one(tmp_path: Path) -> None:
    shown = [
        (page, block) for page, block in blocks("[") if block.startswith(("# httpmark", "# pyproj"))
    ]
    assert len(shown) >= 2
    for page, block in shown:
        name = block.partition("\n")[0].removeprefix("# ")
        folder = tmp_path / page / name
        folder.mkdir(parents=True)
        assert defaults(folder, block, name=name)


def test_every_baseline_our_documents_show_is_one(tmp_path: Path) -> None:
    known = findings.listable(loading.load().families)
    shown = blocks("[[expected]]")
    assert shown
    for _, block in shown:
        (tmp_path / "b.toml").write_text(block)
        assert baseline.read(tmp_path / "b.toml", known=known).entries


@pytest.mark.process
@pytest.mark.parametrize(
    ("file", "words", "asked"),
    [
        ('serve = "./none {port}"', ["{url}"], "GET /hello "),
        ('target = "http://127.0.0.1:1/"', ["{url}"], "GET /hello "),
        ('serve = "./none {port}"\npath = "/file"', ["{url}"], "GET /file "),
        ('target = "http://127.0.0.1:1/"\npath = "/file"', ["{url}own"], "GET /own "),
        ('path = "/file"', ["{url}own", "--path", "/said"], "GET /said "),
        ('target = "{url}own"\npath = "/file"', [], "GET /file "),
    ],
)
def test_the_command_line_drops_the_files_other_word(
    tmp_path: Path, file: str, words: list[str], asked: str
) -> None:
    seen: list[bytes] = []

    def keeping(connection: socket.socket) -> None:
        while request := peers.head(connection):
            seen.append(request)
            connection.sendall(peers.OK)

    with peers.peer(keeping) as peer:
        url = f"http://127.0.0.1:{peer.port}/"
        config = written(tmp_path, "[check]\n" + file.replace("{url}", url))
        done = CliRunner().invoke(
            cli.httpmark,
            ["check", "--config", str(config), *(word.replace("{url}", url) for word in words),
             "--suite", "seed", "--case", "CTRL", "--out", str(tmp_path / "run")],
        )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert seen[0].decode().startswith(asked)


def test_a_served_command_drops_the_files_target(tmp_path: Path) -> None:
    config = written(tmp_path, '[check]\ntarget = "http://127.0.0.1:1/"')
    done = CliRunner().invoke(
        cli.httpmark, ["check", "--config", str(config), "--serve", "no-port"]
    )
    assert "--serve: 'no-port' has no {port}" in str(done.exception)


def test_both_in_one_place_are_a_mistake(tmp_path: Path) -> None:
    config = written(tmp_path, '[check]\ntarget = "http://127.0.0.1:1/"\nserve = "./a {port}"')
    for words in (["--config", str(config)], ["http://127.0.0.1:1/", "--serve", "./a {port}"]):
        done = CliRunner().invoke(cli.httpmark, ["check", *words])
        assert "exclude each other" in str(done.exception)


def test_latest_is_no_path_of_the_configuration_file(tmp_path: Path) -> None:
    """The word is looked up when the command runs; any other folder stands beside the file."""
    assert defaults(tmp_path, '[check]\nrerun = "latest"')["rerun"] == "latest"
    assert defaults(tmp_path, '[check]\nrerun = "old"')["rerun"] == tmp_path / "old"
    assert (
        defaults(tmp_path, '[check]\nbaseline = "latest"')["baseline_path"] == tmp_path / "latest"
    )
