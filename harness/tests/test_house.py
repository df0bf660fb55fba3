"""The house rules that a machine can check, checked."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from httpmark.harness import catalogue

ROOT = Path(__file__).resolve().parent.parent.parent
HARNESS = ROOT / "harness"

# A module may import modules of lower floors, and on its own floor those to its left.
FLOORS = (
    ("model", "grammar", "statistics", "ways"),
    (
        "binaries",
        "notation",
        "expectation",
        "reader",
        "request_reader",
        "leniency",
        "minimise",
        "response_checks",
        "planted",
        "limits_found",
        "observation",
        "delivery",
        "strategies",
        "talks",
        "english",
        "matching",
        "evidence",
        "checks",
        "corpus",
        "catalogue",
        "servers",
    ),
    (
        "plain",
        "address",
        "certificates",
        "wire",
        "probe",
        "supervisor",
        "runtime",
        "judge",
        "score",
        "segmentation",
        "scoring",
        "resources",
        "standing",
        "environment",
    ),
    (
        "runners",
        "conformance",
        "shrinking",
        "discovery",
        "engines",
        "load",
        "ladder",
        "generator",
        "octets",
        "quantities",
        "figures",
        "histogram",
        "plots",
        "maps",
        "agreement",
        "cuts",
        "first_screen",
        "matrix",
        "report",
        "scoreboard",
        "gates",
        "run",
        "compare",
        "check",
        "glossary",
        "explain",
        "opinions",
        "fuzz",
    ),
    ("proof", "junit", "sarif", "github", "gitlab", "metrics", "charts", "badge", "tables"),
    ("baseline", "outputs", "configuration"),
    ("cli", "pytest_plugin"),
)
PLACE = {
    name: (floor, position)
    for floor, names in enumerate(FLOORS)
    for position, name in enumerate(names)
}
DOORS = {
    "docker": {"runtime"},
    "socket": {"wire"},
    "ssl": {"wire"},
    "asyncio": {"wire"},
    "h11": {"reader"},
    "trustme": {"certificates"},
    "cryptography": {"certificates"},
    "hypothesis": {"strategies", "fuzz"},
}
FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "misc", "base", "manager"}


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout.decode()  # fmt: skip
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


MODULES = sorted(path.stem for path in HARNESS.glob("*.py") if path.stem != "__init__")


def imports(module: str) -> Iterator[str]:
    """Full names that a module of the harness imports, wherever in the file."""
    for node in ast.walk(ast.parse((HARNESS / f"{module}.py").read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_module_has_its_place() -> None:
    assert set(MODULES) <= set(PLACE), f"no floor: {set(MODULES) - set(PLACE)}"


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down_or_left(module: str) -> None:
    for name in imports(module):
        if name.startswith("httpmark.harness."):
            other = name.split(".")[2]
            floor, position = PLACE[module]
            other_floor, other_position = PLACE[other]
            assert other_floor < floor or (other_floor == floor and other_position < position), (
                f"{module} imports {other}"
            )


@pytest.mark.parametrize("module", MODULES)
def test_single_doors(module: str) -> None:
    for name in imports(module):
        allowed = DOORS.get(name.split(".")[0])
        assert allowed is None or module in allowed, f"{module} imports {name}"


@pytest.mark.parametrize("module", [m for m in MODULES if m != "cli"])
def test_only_the_command_line_prints(module: str) -> None:
    for node in ast.walk(ast.parse((HARNESS / f"{module}.py").read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{module}:{node.lineno}"


@pytest.mark.parametrize("module", MODULES)
def test_only_one_boundary_catches_everything(module: str) -> None:
    text = (HARNESS / f"{module}.py").read_text("utf-8")
    found = len(re.findall(r"except Exception|except:", text))
    assert found == (1 if module == "cli" else 0)


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is(module: str) -> None:
    assert ast.get_docstring(ast.parse((HARNESS / f"{module}.py").read_text("utf-8")))


def test_the_judge_and_the_judged_share_no_code() -> None:
    native = {path.name for path in (HARNESS / "native").glob("*.hpp")}
    server = {path.name for path in (ROOT / "reference_server" / "src").rglob("*.hpp")}
    for path in tracked("*.cpp", "*.hpp"):
        included = re.findall(r'#include "([^"]+)"', path.read_text("utf-8"))
        half = "harness" if HARNESS in path.parents else "reference_server"
        for name in included:
            other = server - native if half == "harness" else native - server
            assert Path(name).name not in other, f"{path}: {name}"
            assert ("reference_server" if half == "harness" else "harness/") not in name


def test_no_name_says_nothing() -> None:
    for path in tracked():
        assert path.stem not in FORBIDDEN_NAMES, path


def test_case_ids_are_unique_and_permanent_slugs() -> None:
    known = catalogue.load()
    ids = list(known.families)
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z0-9]+(?:[_-][a-z0-9]+)*", name) for name in ids)


def test_every_image_folder_has_a_manifest() -> None:
    folders = {path.relative_to(ROOT).parts[1] for path in tracked("images/*/*")}
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
        for node in ast.walk(ast.parse((HARNESS / "cli.py").read_text("utf-8")))
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
    cli = (HARNESS / "cli.py").read_text("utf-8")
    plugin = (HARNESS / "pytest_plugin.py").read_text("utf-8")
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
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text("utf-8")):
            if "://" not in link:
                assert (path.parent / link).exists(), f"{path.relative_to(ROOT)}: {link}"


def test_nothing_names_a_path_of_one_machine() -> None:
    pattern = re.compile(rb"/(?:work|farm|root|home)/[a-z]")
    for path in tracked():
        if path.suffix not in (".png", ".lock") and path != Path(__file__).resolve():
            found = pattern.search(path.read_bytes())
            assert found is None, f"{path.relative_to(ROOT)}: {found}"


def test_no_large_file_is_tracked() -> None:
    for path in tracked():
        assert path.stat().st_size <= 400_000, path


def test_every_test_file_mirrors_a_source() -> None:
    subjects = {
        "house", "images", "reproduction", "manners", "packaging", "action", "scenarios",
        "requirements", "rogue",
    }  # fmt: skip
    sources = set(MODULES) | subjects
    for path in (HARNESS / "tests").glob("test_*.py"):
        name = path.stem.removeprefix("test_")
        assert name in sources or name.rsplit("_", 1)[0] in sources, path.name


def test_every_module_is_reached_from_the_command() -> None:
    reached: set[str] = set()
    queue = ["cli"]
    while queue:
        module = queue.pop()
        if module in reached:
            continue
        reached.add(module)
        queue += [n.split(".")[2] for n in imports(module) if n.startswith("httpmark.harness.")]
    # supervisor is started as a program of its own; pytest finds the plugin by its entry point.
    assert set(MODULES) - reached <= {"supervisor", "pytest_plugin"}, "dead modules"
