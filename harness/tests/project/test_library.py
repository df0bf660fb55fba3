"""The server's library: what applications see of it, and that an installed one can be used."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from httpmark.harness.tests.shared import child_process
from httpmark.harness.tests.shared.repository import ROOT, tracked

LIBRARY = ROOT / "reference_server"
INCLUDED = re.compile(r'^#include ([<"][^>"]+[>"])', re.MULTILINE)

PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(outside LANGUAGES CXX)
find_package(httpmark 0.1 REQUIRED)
add_executable(app app.cpp)
target_link_libraries(app httpmark::httpmark)
"""
APPLICATION = """
#include <httpmark/httpmark.hpp>

#include <cstdio>

int main() {
    httpmark::Router::Builder routes;
    routes.add(httpmark::Method::kGet, "/greet/{name}",
               [](const httpmark::Request& request, httpmark::ResponseWriter& writer) {
                   return httpmark::answer_json(writer, 200, [&](httpmark::JsonWriter& json) {
                       json.begin_object().key("hello").string(request.value("name"));
                       json.end_object();
                   });
               });
    httpmark::StartError error;
    const auto server = httpmark::Server::start(routes, {.port = 0, .workers = 1}, error);
    if (server == nullptr) {
        std::fprintf(stderr, "%s\\n", error.text.c_str());
        return 1;
    }
    std::printf("%d\\n", server->port());
    std::fflush(stdout);
    server->wait();
}
"""


def test_applications_are_written_on_the_public_header_alone() -> None:
    """Else the library would lack what they need."""
    sources = tracked("reference_server/example/*", "reference_server/examples/*.cpp")
    assert LIBRARY / "example" / "application.cpp" in sources
    assert len(tracked("reference_server/example/*")) == 1, "the server stands in one file"
    for path in sources:
        included = INCLUDED.findall(path.read_text("utf-8"))
        own = [name for name in included if "/" in name or name.startswith('"')]
        assert own == ["<httpmark/httpmark.hpp>"], f"{path}: {own}"


def run(*words: str | Path, cwd: Path) -> None:
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, timeout=800)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.process
@pytest.mark.timeout(900)
def test_an_installed_library_is_used_from_a_project_outside_the_tree(tmp_path: Path) -> None:
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
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "CMakeLists.txt").write_text(PROJECT)
    (outside / "app.cpp").write_text(APPLICATION)
    run(cmake, "-S", outside, "-B", outside / "build", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=outside)
    run(cmake, "--build", outside / "build", cwd=outside)
    with child_process.start([str(outside / "build" / "app")], stdout=subprocess.PIPE) as app:
        try:
            assert app.stdout is not None
            port = int(app.stdout.readline())
            url = f"http://127.0.0.1:{port}/greet/you"
            with urllib.request.urlopen(url, timeout=10) as answer:
                assert answer.read() == b'{"hello":"you"}'
        finally:
            app.kill()
