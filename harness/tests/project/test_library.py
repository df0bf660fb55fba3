"""The server's library: what applications see of it, and that an installed one can be used."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from httpmark.harness.tests.shared import child_process
from httpmark.harness.tests.shared.repository import ROOT, tracked

LIBRARY = ROOT / "reference_server"
INCLUDED = re.compile(r'^#include ([<"][^>"]+[>"])', re.MULTILINE)

PAGE = ROOT / "docs" / "library.md"
PROGRAMS = sorted((LIBRARY / "tutorial").glob("*.cpp"))
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(language: str) -> list[str]:
    """What the page shows in a language."""
    return [text for name, text in BLOCK.findall(PAGE.read_text("utf-8")) if name == language]


def test_the_page_shows_each_program_word_for_word() -> None:
    assert sorted(blocks("cpp")) == sorted(path.read_text("utf-8") for path in PROGRAMS)
    for path in PROGRAMS:
        assert f"`{path.relative_to(ROOT)}`" in PAGE.read_text("utf-8")


def test_applications_are_written_on_the_public_header_alone() -> None:
    """Else the library would lack what they need."""
    sources = tracked("reference_server/example/*", "reference_server/tutorial/*.cpp")
    assert LIBRARY / "example" / "application.cpp" in sources
    assert len(tracked("reference_server/example/*")) == 1, "the server stands in one file"
    for path in sources:
        included = INCLUDED.findall(path.read_text("utf-8"))
        own = [name for name in included if "/" in name or name.startswith('"')]
        assert own == ["<httpmark/httpmark.hpp>"], f"{path}: {own}"


def run(*words: str | Path, cwd: Path) -> None:
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, timeout=800)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def ask(
    port: int, target: str, *, method: str = "GET", content: str | None = None, **fields: str
) -> tuple[int, str, dict[str, str]]:
    """Status, content and fields of one answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    connection.request(method, target, body=content, headers=named)
    answer = connection.getresponse()
    octets = answer.read()
    connection.close()
    if answer.getheader("Content-Encoding") == "gzip":
        octets = gzip.decompress(octets)
    return answer.status, octets.decode(), {k.lower(): v for k, v in answer.getheaders()}


@contextmanager
def running(program: Path, *words: str) -> Iterator[int]:
    """The port of a program that runs, and then ends by itself when it is asked to."""
    with child_process.start([str(program), *words], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("listening on "), line
            yield int(line.rpartition(":")[2])
            process.terminate()
            assert process.wait(20) == 0
        finally:
            process.kill()


def ask_hello(program: Path) -> None:
    with running(program, "--port", "0", "--workers", "1") as port:
        assert ask(port, "/")[:2] == (200, "Hello, world!\n")
        assert ask(port, "/other")[0] == 404


def ask_json_api(program: Path) -> None:
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    with running(program, "0") as port:
        status, text, fields = ask(port, "/notes", method="POST", content="text=buy+milk", **form)
        assert (status, text) == (201, '{"id":1,"text":"buy milk"}')
        assert fields["location"] == "/notes/1"
        for number in range(60):
            ask(port, "/notes", method="POST", content=f"text=to+do+{number}", **form)
        status, text, fields = ask(port, "/notes", Accept_Encoding="gzip")
        assert (fields["content-encoding"], fields["vary"]) == ("gzip", "Accept-Encoding")
        assert [note["id"] for note in json.loads(text)] == list(range(1, 62))
        assert json.loads(ask(port, "/notes?contains=mi%6Ck")[1]) == [{"id": 1, "text": "buy milk"}]
        assert ask(port, "/notes", method="POST", content="text=%zz", **form)[:2] == (
            400,
            "form-percent at 5\n",
        )
        assert ask(port, "/notes", method="POST", content="text=x")[0] == 415
        assert ask(port, "/notes", method="POST", content="other=x", **form)[0] == 422
        assert ask(port, "/notes/1", method="DELETE")[0] == 204
        assert [ask(port, f"/notes/{one}", method="DELETE")[0] for one in ("1", "2x")] == [404, 404]
        assert json.loads(ask(port, "/nowhere")[1]) == {"problem": "there is nothing here"}


ASKED: dict[str, Callable[[Path], None]] = {"hello": ask_hello, "json_api": ask_json_api}


@pytest.mark.process
@pytest.mark.timeout(900)
def test_the_programs_of_the_page_run_on_an_installed_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is compiled in one folder is found again from another one.
    monkeypatch.setenv("CCACHE_BASEDIR", str(tmp_path))
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}:/usr/bin")
    assert cmake is not None, "make setup installs it"
    launcher = shutil.which("ccache")
    cached = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"] if launcher else []
    prefix = tmp_path / "prefix"
    # With the flags of the build that `make` makes, so that ccache has the objects.
    flags = tmp_path / "flags.cmake"
    flags.write_text("add_compile_options($<$<CXX_COMPILER_ID:GNU>:-frecord-gcc-switches>)\n")
    run(
        cmake, "-S", LIBRARY, "-B", tmp_path / "build", "-DCMAKE_BUILD_TYPE=Release",
        "-DHTTPMARK_SERVER_TESTS=OFF", "-DHTTPMARK_SERVER_WERROR=ON",
        f"-DCMAKE_PROJECT_INCLUDE={flags}", *cached, cwd=tmp_path,
    )  # fmt: skip
    run(cmake, "--build", tmp_path / "build", "--target", "httpmark", cwd=tmp_path)
    run(cmake, "--install", tmp_path / "build", "--prefix", prefix, cwd=tmp_path)
    headers = list((prefix / "include").rglob("*.hpp"))
    assert {path.relative_to(prefix / "include").parts[0] for path in headers} == {"httpmark"}
    assert [path.name for path in (prefix / "include" / "httpmark").glob("*.hpp")] == [
        "httpmark.hpp"
    ]
    assert str(LIBRARY) not in "".join(path.read_text() for path in prefix.rglob("*.cmake"))
    # Each program of the page, with the CMakeLists.txt that it shows.
    assert ASKED.keys() == {path.stem for path in PROGRAMS}
    (project,) = blocks("cmake")
    for path in PROGRAMS:
        outside = tmp_path / path.stem
        outside.mkdir()
        (outside / "CMakeLists.txt").write_text(project)
        shutil.copy(path, outside / "app.cpp")
        run(
            cmake, "-S", outside, "-B", outside / "build", f"-DCMAKE_PREFIX_PATH={prefix}", *cached,
            cwd=outside,
        )  # fmt: skip
        run(cmake, "--build", outside / "build", cwd=outside)
        ASKED[path.stem](outside / "build" / "app")
