"""The house rules that a machine can check, checked."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.tests.shared.cpp_functions import CppFunction, functions
from httpmark.harness.tests.shared.repository import ROOT, tracked

HARNESS = ROOT / "harness"

# Which wing may use which; `model` and `http` are open to all. There is no circle: a wing uses only
# wings that stand above it here.
WINGS: dict[str, set[str]] = {
    "model": set(),
    "http": set(),
    "catalogue": set(),
    "servers": set(),
    "judging": {"catalogue"},
    "firing": {"catalogue", "servers", "judging"},
    "load": {"catalogue", "servers"},
    "cluster": {"servers", "load"},
    "gate": {"catalogue", "judging"},
    "report": {"catalogue", "servers", "judging", "load", "gate"},
    "command": {
        "catalogue",
        "servers",
        "judging",
        "firing",
        "load",
        "cluster",
        "gate",
        "report",
    },
}
OPEN_TO_ALL = {"model", "http"}
# What only these modules may import.
DOORS = {
    "docker": {"servers.docker_daemon", "servers.docker_images", "servers.containers"},
    "socket": {"servers.sockets", "servers.abusive_clients"},
    "ssl": {"servers.sockets", "servers.abusive_clients"},
    "asyncio": {"servers.abusive_clients"},
    "sqlite3": {"judging.evidence", "judging.evidence_damage"},
    "tomllib": {"model.toml_text"},
    "jinja2": {"report.html_page"},
    "h11": {"http.response_reader"},
    "trustme": {"servers.certificates"},
    "cryptography": {"servers.certificates"},
    "hypothesis": {"firing.strategies"},
}
# Wings that a door may stand in as a whole.
WING_DOORS = {
    "rich": {"command"},
    "click": {"command"},
    "distributed": {"cluster"},
    "subprocess": {"servers", "load", "firing", "judging", "command"},
}
# The only module that names paths of /proc; all others ask it.
PROC_DOOR = "servers.proc_files"
LINES_MAX = 600
FUNCTION_LINES_MAX = 60
# Files and functions that are longer, and why they are one idea. There is none today.
LONGER_FILES: dict[str, str] = {}
LONGER_FUNCTIONS: dict[str, str] = {}
# clang-format breaks its lambdas with `-> auto&` over lines.
UNSHAPED_SOURCES = {"reference_server/src/command/flags.cpp"}
# Documents that httpmark writes for its users, rather than has.
WRITTEN_DOCUMENTS = {"summary.md", "speed.md"}
FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "misc", "base", "manager"}


PACKAGE = "httpmark.harness."
# A statement that imports, up to its end; ruff keeps this shape.
IMPORT = re.compile(r"^[ \t]*(?:from [\w.]+ )?import (?:\([^)]*\)|[^\n(]*)$", re.MULTILINE)

MODULES = sorted(
    ".".join(path.relative_to(HARNESS).with_suffix("").parts)
    for path in HARNESS.rglob("*.py")
    if not {"tests", "native", "__pycache__"} & set(path.relative_to(HARNESS).parts)
    and path.name != "__init__.py"
)


def path_of(module: str) -> Path:
    return HARNESS / (module.replace(".", "/") + ".py")


@dataclass
class Facts:
    """What a module of the harness is made of, found in one walk over its syntax tree."""

    docstring: str | None
    imports: list[str] = field(default_factory=list)
    """Full names, wherever in the file."""
    used: list[str] = field(default_factory=list)
    """The modules of the harness that it imports, as ``wing.module``."""
    lines_of_proc: list[int] = field(default_factory=list)
    lines_of_print: list[int] = field(default_factory=list)
    function_lines: dict[str, int] = field(default_factory=dict)


@functools.cache
def facts(module: str) -> Facts:
    tree = ast.parse(path_of(module).read_text("utf-8"))
    found = Facts(ast.get_docstring(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                found.imports += (alias.name for alias in node.names)
            case ast.ImportFrom():
                assert node.level == 0, f"{module}: relative import"
                found.imports += (f"{node.module}.{alias.name}" for alias in node.names)
            case ast.Constant(value=str(text)):
                if re.match(r"/proc(/|$)", text):
                    found.lines_of_proc.append(node.lineno)
            case ast.Call(func=ast.Name(id="print")):
                found.lines_of_print.append(node.lineno)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                length = (node.end_lineno or 0) - node.body[0].lineno + 1
                found.function_lines[node.name] = max(
                    length, found.function_lines.get(node.name, 0)
                )
    found.used = [_module_of(name) for name in found.imports if name.startswith(PACKAGE)]
    return found


def _module_of(name: str) -> str:
    """The module that an imported name stands in, or the wing."""
    parts = name.removeprefix(PACKAGE).split(".")
    found = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((one for one in found if one in MODULES), parts[0])


@functools.cache
def functions_of(path: Path) -> list[CppFunction]:
    return functions(path.read_text("utf-8"))


def test_every_module_stands_in_a_wing() -> None:
    assert {module.split(".")[0] for module in MODULES} == set(WINGS)
    assert [path.name for path in HARNESS.glob("*.py")] == ["__init__.py"]


@pytest.mark.parametrize("wing", WINGS)
def test_a_wing_says_what_comes_in_what_goes_out_and_whom_it_may_use(wing: str) -> None:
    text = ast.get_docstring(ast.parse((HARNESS / wing / "__init__.py").read_text("utf-8"))) or ""
    _, rest = text.split("\n\n")
    flow, uses = rest.splitlines()
    assert re.fullmatch(r"In: .*\. Out: .*\.", flow)
    named = re.fullmatch(r"May use: (.*)\.", uses)
    assert named is not None
    words = {"no other wing": set(), "every wing": set(WINGS) - {wing}}.get(
        named[1], set(named[1].split(", "))
    )
    shared = OPEN_TO_ALL - {wing} if wing != "model" else set()
    assert words == WINGS[wing] | (shared - {"http"} if wing == "http" else shared)


def test_no_circle_exists_between_wings() -> None:
    above: set[str] = set()
    for wing, uses in WINGS.items():
        assert uses <= above, wing
        above.add(wing)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_uses_only_wings_that_its_own_may_use(module: str) -> None:
    wing = module.split(".")[0]
    allowed = WINGS[wing] | OPEN_TO_ALL | {wing}
    if wing in OPEN_TO_ALL:
        allowed = {"model", wing}
    for other in facts(module).used:
        assert other.split(".")[0] in allowed, f"{module} imports {other}"


def test_no_circle_exists_between_modules() -> None:
    graph = {module: set(facts(module).used) & set(MODULES) - {module} for module in MODULES}
    while leaves := [module for module, uses in graph.items() if not uses]:
        for leaf in leaves:
            del graph[leaf]
        graph = {module: uses - set(leaves) for module, uses in graph.items()}
    assert not graph, f"a circle goes through some of {sorted(graph)}"


@pytest.mark.parametrize("module", MODULES)
def test_single_doors(module: str) -> None:
    for name in facts(module).imports:
        top = name.split(".")[0]
        assert module in DOORS.get(top, {module}), f"{module} imports {name}"
        wing = module.split(".")[0]
        assert wing in WING_DOORS.get(top, {wing}), f"{module} imports {name}"


@pytest.mark.parametrize("module", [m for m in MODULES if m != PROC_DOOR])
def test_one_module_reads_proc(module: str) -> None:
    assert not facts(module).lines_of_proc


@pytest.mark.parametrize("module", [m for m in MODULES if not m.startswith("command.")])
def test_only_the_command_prints(module: str) -> None:
    assert not facts(module).lines_of_print


def test_one_door_leads_to_the_terminal() -> None:
    """It makes safe what servers have a say in (``printable.terminal_text``)."""
    found = {module for module in MODULES if "click.echo(" in path_of(module).read_text("utf-8")}
    assert found == {"command.printing"}


def test_only_one_boundary_catches_everything() -> None:
    found = {
        module: count
        for module in MODULES
        if (count := len(re.findall(r"except Exception|except:", path_of(module).read_text())))
    }
    assert found == {"command.cli": 1}


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is(module: str) -> None:
    assert facts(module).docstring


def sources() -> list[Path]:
    """Python and C++ that is no test."""
    found = tracked(
        "harness/*.py",
        "harness/native/*.cpp",
        "reference_server/src/*.cpp",
        "reference_server/example/*.cpp",
    )
    return [path for path in found if "tests" not in path.relative_to(ROOT).parts]


def test_no_file_is_longer_than_one_idea_needs() -> None:
    lines = {str(path.relative_to(ROOT)): path.read_text("utf-8").count("\n") for path in sources()}
    long = {name: count for name, count in lines.items() if count > LINES_MAX}
    assert long.keys() == LONGER_FILES.keys(), long


def test_no_function_is_longer_than_one_idea_needs() -> None:
    long = {
        f"{path.relative_to(ROOT)}: {one.name}": one.body_lines
        for path in tracked("*.cpp", "*.hpp")
        for one in functions_of(path)
        if one.body_lines > FUNCTION_LINES_MAX
    }
    long |= {
        f"{module}.{name}": length
        for module in MODULES
        for name, length in facts(module).function_lines.items()
        if length > FUNCTION_LINES_MAX
    }
    assert long.keys() == LONGER_FUNCTIONS.keys(), long


def test_every_function_of_cpp_is_measured() -> None:
    """A brace alone at the beginning of a line ends a function: clang-format sees to it."""
    for path in tracked("*.cpp", "*.hpp"):
        source = path.read_text("utf-8")
        found = functions_of(path)
        name = str(path.relative_to(ROOT))
        assert found or path.suffix == ".hpp", f"{name}: no function is found"
        ends = {one.line + one.body_lines + 1 for one in found}
        braces = {at for at, line in enumerate(source.split("\n"), 1) if line == "}"}
        if name not in UNSHAPED_SOURCES:
            assert braces <= ends, f"{name}: lines {sorted(braces - ends)}"


def test_the_judge_and_the_judged_share_no_code() -> None:
    native = {
        path.name
        for path in (HARNESS / "native").rglob("*.hpp")
        if "tests" not in path.relative_to(HARNESS).parts
    }
    server = {path.name for path in (ROOT / "reference_server" / "src").rglob("*.hpp")}
    for path in tracked("*.cpp", "*.hpp"):
        included = re.findall(r'#include "([^"]+)"', path.read_text("utf-8"))
        half = "harness" if HARNESS in path.parents else "reference_server"
        for name in included:
            other = server - native if half == "harness" else native - server
            assert Path(name).name not in other, f"{path}: {name}"
            assert ("reference_server" if half == "harness" else "harness/") not in name


def test_the_core_of_the_reference_server_names_no_route() -> None:
    """What it serves is an application's. Files of the system are no routes."""
    source = ROOT / "reference_server" / "src"
    files = [
        path
        for path in tracked("reference_server/src/*.cpp", "reference_server/src/*.hpp")
        if path.relative_to(source).parts[0] != "command"
    ]
    assert len(files) > 40
    for path in files:
        code = re.sub(r"^ *#include.*$|//.*$", "", path.read_text("utf-8"), flags=re.MULTILINE)
        literals = re.findall(r'"((?:[^"\\\n]|\\.)*)"', code)
        files_of_system = ("/dev/null", "/etc/passwd")
        routes = [
            text for text in literals if re.match(r"/\w", text) and text not in files_of_system
        ]
        assert not routes, f"{path}: {routes}"
        # What load profiles ask for: the answer of their common page, and the size of a large one.
        assert not re.search(r"(?i)hello|mirror|1048576", code), path


def test_no_name_says_nothing() -> None:
    for path in tracked():
        assert path.stem not in FORBIDDEN_NAMES, path


def test_case_ids_are_unique_and_permanent_slugs() -> None:
    known = loading.load()
    ids = list(known.families)
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z0-9]+(?:[_-][a-z0-9]+)*", name) for name in ids)


def test_every_image_folder_has_a_manifest() -> None:
    folders = {path.relative_to(ROOT).parts[1] for path in tracked("images/*/*")}
    # What several servers run stands in folders of its own.
    folders = {one for one in folders if not one.startswith("applications")}
    manifests = {path.parent.name for path in tracked("images/*/server.toml")}
    assert folders == manifests


def shell_blocks(path: Path) -> str:
    """The commands that a document shows."""
    text = path.read_text("utf-8")
    return "\n".join(re.findall(r"```(?:sh|console|bash)\n(.*?)```", text, re.DOTALL))


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_documents_name_only_commands_that_exist() -> None:
    words = {
        node.args[0].value
        for module in MODULES
        if module.startswith("command.")
        for node in ast.walk(ast.parse(path_of(module).read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("command", "group")
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    seen = 0
    for path in PAGES:
        blocks = shell_blocks(path)
        used = set(re.findall(r"^(?:\$ )?(?:\S*/)?httpmark ([a-z][a-z-]*)", blocks, re.M))
        seen += len(used)
        assert used <= words, f"{path.name}: unknown: {used - words}"
        made = set(re.findall(r"^\$? ?make ([a-z][a-z-]*)", blocks, re.M))
        assert made <= targets, f"{path.name}: unknown: {made - targets}"
    assert seen, "the documents show no command"


def test_every_long_option_of_a_document_exists() -> None:
    cli = "".join(path.read_text("utf-8") for path in (HARNESS / "command").rglob("*.py"))
    plugin = path_of("command.pytest_plugin").read_text("utf-8")
    for path in PAGES:
        for line in shell_blocks(path).splitlines():
            if not (found := re.match(r"\$? ?(?:\S*/)?(httpmark|pytest) ", line)):
                continue
            source = cli if found[1] == "httpmark" else plugin
            # What a command in quotes is given is not ours.
            for option in re.findall(r"(?<!\S)(--[a-z][a-z-]+)", re.sub(r"\"[^\"]*\"", "", line)):
                assert f'"{option}"' in source, f"{option} in {path.name}: {line}"


def test_links_in_documents_lead_somewhere() -> None:
    for path in tracked("*.md"):
        # Code that a page shows has brackets of its own.
        prose = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose):
            if "://" not in link:
                assert (path.parent / link).exists(), f"{path.relative_to(ROOT)}: {link}"


def test_every_document_that_a_text_names_is_here() -> None:
    here = {str(path.relative_to(ROOT)) for path in tracked("*.md", "*.yml")}
    names = {name.rpartition("/")[2] for name in here} | WRITTEN_DOCUMENTS
    lacking = []
    for path in tracked():
        if path.suffix in (".png", ".lock") or path.name in ("CHANGELOG.md", "test_house.py"):
            continue
        for named in re.findall(rb"\b[A-Za-z0-9_./-]{0,99}[A-Za-z0-9_-]\.md\b", path.read_bytes()):
            name = named.decode()
            is_known = name in here if name.startswith("docs/") else name.split("/")[-1] in names
            if not is_known:
                lacking.append(f"{path.relative_to(ROOT)}: {name}")
    assert not lacking, "\n".join(lacking)


def test_the_picture_of_the_house_shows_every_wing() -> None:
    drawn = (ROOT / "docs" / "architecture.svg").read_text("utf-8")
    table = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    for wing in WINGS:
        assert f">{wing}</text>" in drawn, wing
        assert f"| `{wing}` |" in table, wing


def test_nothing_names_a_path_of_one_machine() -> None:
    pattern = re.compile(rb"/(?:work|farm|root|home)/[a-z]")
    for path in tracked():
        if path.suffix not in (".png", ".lock") and path != Path(__file__).resolve():
            found = pattern.search(path.read_bytes())
            assert found is None, f"{path.relative_to(ROOT)}: {found}"


def test_every_module_that_a_text_names_exists() -> None:
    """In strings, configuration and documents, too: a name there is checked by nobody else."""
    unknown = []
    for path in tracked("*.py", "*.toml", "*.md", "*.yml", "Makefile", ".ci/*"):
        if path.name == "CHANGELOG.md":
            continue
        text = path.read_text("utf-8")
        named = set(re.findall(r"\bhttpmark\.harness\.([a-z_0-9.]*[a-z_0-9])", text))
        named |= {
            f"{(wing or '').lstrip('.')}.{name}".lstrip(".")
            for wing, name in re.findall(
                r"from httpmark\.harness(\.[a-z_.]+)? import ([a-z_0-9]+)\b", text
            )
        }
        named |= {
            one.replace("/", ".")
            for one in re.findall(r"\bharness/((?:[a-z_0-9]+/)*[a-z_0-9]+)\.py\b", text)
        }
        for name in named:
            parts = name.split(".")
            ends = (HARNESS.joinpath(*parts[:end]) for end in range(len(parts), 0, -1))
            found = next((p for p in ends if p.with_suffix(".py").exists() or p.is_dir()), None)
            # Below a wing a name is a module; below a module it is a name of that module.
            if found is None or (found.is_dir() and found != HARNESS.joinpath(*parts)):
                unknown.append(f"{path.relative_to(ROOT)}: {name}")
    assert not unknown, "\n".join(sorted(unknown))


def test_no_large_file_is_tracked() -> None:
    for path in tracked():
        assert path.stat().st_size <= 400_000, path


def test_every_test_file_mirrors_a_source() -> None:
    """tests/<wing>/test_<module>.py; below a module's name may stand what of it is tested."""
    for path in (HARNESS / "tests").rglob("test_*.py"):
        place = path.relative_to(HARNESS / "tests").parent
        if place.parts == ("project",):
            continue
        name = path.stem.removeprefix("test_")
        folder = HARNESS / place
        known = (
            {folder.name}
            | {one.stem for one in folder.rglob("*")}
            | {"scenarios", "requirements", "rogue"}
        )
        known |= {"manners"}
        ends = [at for at in range(len(name) + 1) if at == len(name) or name[at] == "_"]
        assert any(name[:end] in known for end in ends), path.relative_to(HARNESS)


def test_no_test_file_imports_from_another() -> None:
    """What several tests share lives in harness/tests/shared/."""
    found = [
        f"{path.relative_to(ROOT)}: {line[0].strip()}"
        for path in tracked("*.py")
        for line in IMPORT.finditer(path.read_text("utf-8"))
        if re.search(r"\btest_", line[0])
    ]
    assert not found, "\n".join(found)


def test_every_module_is_reached_from_the_command() -> None:
    reached: set[str] = set()
    # The subcommands are found by their files.
    queue = ["command.cli", *(one for one in MODULES if one.startswith("command.subcommands."))]
    while queue:
        module = queue.pop()
        if module in reached or module not in MODULES:
            continue
        reached.add(module)
        queue += facts(module).used
    # The supervisor is started as a program of its own; the command and pytest's plugin are found
    # by their entry points.
    entries = {"servers.supervisor", "command.entry", "command.pytest_plugin"}
    assert set(MODULES) - reached <= entries, "dead modules"
