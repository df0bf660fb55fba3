"""The server's library: what applications see of it, and that an installed one can be used."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from httpmark.harness.tests.shared import child_process
from httpmark.harness.tests.shared.repository import ROOT, tracked
from httpmark.harness.tests.shared.websocket_frames import FIN, HANDSHAKE, TEXT, text

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


@pytest.mark.process
def test_the_public_header_defines_no_macro(tmp_path: Path) -> None:
    """Those of its own headers would meet others of the same name, such as a test framework's."""
    compiler = shutil.which("c++") or shutil.which("g++")
    assert compiler is not None, "make setup installs it"
    folders = [LIBRARY / "include", LIBRARY / "src"]
    everything = tmp_path / "all.cpp"
    everything.write_text("#include <httpmark/httpmark.hpp>\n")
    included = [f"-I{one}" for one in folders]
    command = [compiler, "-std=c++20", "-E", "-dD", *included, str(everything)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    file = ""
    own = []
    for line in done.stdout.splitlines():
        if line.startswith("# "):
            file = line.split('"')[1]
        elif line.startswith("#define ") and file.startswith(str(LIBRARY)):
            own.append(f"{file}: {line}")
    assert "httpmark" in done.stdout
    assert own == []


def run(*words: str | Path, cwd: Path) -> None:
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, timeout=1500)
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
            '{"problem":"form-percent"}',
        )
        assert ask(port, "/notes", method="POST", content="text=x")[0] == 415
        assert ask(port, "/notes", method="POST", content="other=x", **form)[0] == 422
        assert ask(port, "/notes/1", method="DELETE")[0] == 204
        assert [ask(port, f"/notes/{one}", method="DELETE")[0] for one in ("1", "2x")] == [404, 404]
        assert json.loads(ask(port, "/nowhere")[1]) == {"problem": "there is nothing here"}
        status, text, fields = ask(port, "/notes", method="PUT")
        assert (status, text) == (405, '{"problem":"method-not-allowed"}')
        assert fields["content-type"] == "application/json"
        assert fields["x-content-type-options"] == "nosniff"
        for site, status in (("cross-site", 403), ("same-origin", 201)):
            sent = {**form, "Sec_Fetch_Site": site}
            assert ask(port, "/notes", method="POST", content="text=x", **sent)[0] == status
        assert ask(port, "/notes", Sec_Fetch_Site="cross-site")[0] == 200


def ask_file_server(program: Path) -> None:
    folder = program.parent / "files"
    (folder / "below").mkdir(parents=True)
    (folder / "text.txt").write_text("0123456789")
    (folder / "below" / "index.html").write_text("<p>index</p>")
    (program.parent / "secret").write_text("secret")
    with running(program, str(folder), "0") as port:
        status, content, fields = ask(port, "/text.txt")
        assert (status, content, fields["content-type"]) == (200, "0123456789", "text/plain")
        assert ask(port, "/text.txt", Range="bytes=2-4")[:2] == (206, "234")
        assert ask(port, "/text.txt", If_None_Match=fields["etag"])[:2] == (304, "")
        assert ask(port, "/below/")[:2] == (200, "<p>index</p>")
        assert ask(port, "/none")[0] == 404
        for path in ("/../secret", "/%2e%2e/secret", "/below/..%2f..%2fsecret"):
            assert ask(port, path)[0] in (301, 404), path
    wrong = subprocess.run([program, folder / "none"], capture_output=True, check=False, timeout=20)
    assert wrong.returncode == 2
    assert wrong.stderr


def enter_chat(port: int, name: str) -> socket.socket:
    """A connection that speaks WebSocket."""
    wire = socket.create_connection(("127.0.0.1", port), timeout=10)
    wire.sendall(HANDSHAKE.replace(b"/websocket", f"/chat?name={name}".encode()) + b"\r\n")
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += wire.recv(1)
    assert head.startswith(b"HTTP/1.1 101 "), head
    return wire


def told(wire: socket.socket, *messages: str) -> None:
    """These are the next messages, and each is one frame."""
    assert next_texts(wire, len(messages)) == messages


def next_octets(wire: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        more = wire.recv(size - len(got))
        assert more, got
        got += more
    return got


def next_texts(wire: socket.socket, count: int) -> tuple[str, ...]:
    """So many messages, each of them in one short frame."""
    found = []
    for _ in range(count):
        kind, size = next_octets(wire, 2)
        assert (kind, size < 126) == (FIN | TEXT, True)
        found.append(next_octets(wire, size).decode())
    return tuple(found)


def ask_chat(program: Path) -> None:
    with running(program, "0") as port, ExitStack() as stay:
        page = ask(port, "/")
        assert page[0] == 200
        assert "new WebSocket" in page[1]
        # Enough to be with more than one worker.
        members: list[tuple[str, socket.socket]] = []

        def told_all(message: str) -> None:
            for _, wire in members:
                told(wire, message)

        for number in range(8):
            members.append(
                (f"Böb{number}", stay.enter_context(enter_chat(port, f"B%C3%B6b{number}")))
            )
            told_all(f"Böb{number} is here")
        for name, wire in members:
            wire.sendall(text(b"hello") + text(b"again"))
            told_all(f"{name}: hello")
            told_all(f"{name}: again")
        # What all say at once, all hear in one order.
        for _, wire in members:
            wire.sendall(text(b"bye") * 20)
        heard = {next_texts(wire, 20 * len(members)) for _, wire in members}
        assert len(heard) == 1
        assert sorted(*heard) == sorted(f"{name}: bye" for name, _ in members for _ in range(20))
        name, wire = members.pop()
        wire.close()
        told_all(f"{name} has left")


def form_of(*files: tuple[str, bytes]) -> bytes:
    """A form with a field that is no file, and with these files."""
    field = b'--b\r\nContent-Disposition: form-data; name="comment"\r\n\r\nholiday\r\n'
    parts = [
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n%s\r\n'
        % (name.encode(), content)
        for name, content in files
    ]
    return field + b"".join(parts) + b"--b--\r\n"


def upload(port: int, *pieces: bytes, size: int | None = None) -> tuple[int, str]:
    """Status and content of the answer to a form that is sent in these pieces."""
    size = sum(map(len, pieces)) if size is None else size
    with socket.create_connection(("127.0.0.1", port), timeout=20) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire.sendall(
            b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
            b"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n" % size
        )
        for piece in pieces:
            wire.sendall(piece)
        answer = http.client.HTTPResponse(wire)
        answer.begin()
        return answer.status, answer.read().decode()


def ask_upload(program: Path) -> None:
    folder = program.parent / "uploads"
    folder.mkdir()
    outside = set(program.parent.iterdir())
    photo = bytes(range(256)) * 4000 + b"\r\n--\r\r\n-- b--"
    names = {
        "photo.jpg": "photo.jpg",
        "../../secret": "secret",
        "C:\\\\temp\\\\a b.txt": "a_b.txt",
        ".bashrc": "file.bashrc",
        "..": "file..",
        "Böb.txt": "B__b.txt",
        "x" * 300: "x" * 100,
    }
    form = form_of(*((name, photo) for name in names), ("", b""))
    with running(program, str(folder), "0") as port:
        assert 'enctype="multipart/form-data"' in ask(port, "/")[1]
        status, text = upload(port, form)
        assert (status, json.loads(text)) == (
            201, [{"name": name, "size": len(photo)} for name in names.values()]
        )  # fmt: skip
        assert {path.name for path in folder.iterdir()} == set(names.values())
        assert {path.read_bytes() for path in folder.iterdir()} == {photo}
        # Nothing is replaced. Pieces are cut anywhere, so also inside a delimiter.
        short = form_of(("photo.jpg", b"other"))
        status, text = upload(port, *(short[at : at + 3] for at in range(0, len(short), 3)))
        assert (status, json.loads(text)) == (201, [{"name": "2-photo.jpg", "size": 5}])
        assert (folder / "photo.jpg").read_bytes() == photo
        stored = {path.name for path in folder.iterdir()}
        # Of a form that is too large, or none, nothing is kept.
        large = form_of(("small", b"s"), ("large", b"x" * (8388608 + 1)))
        status, text = upload(port, large)
        assert (status, text.partition(" at ")[0]) == (413, "part-too-large")
        assert upload(port, size=20 * 1048576 + 1)[0] == 413
        many = form_of(*((str(number), b"") for number in range(10)))
        assert upload(port, many)[1].startswith("parts-too-many at ")
        assert upload(port, form_of(("cut", b"x"))[:-6])[0] == 400
        assert ask(port, "/", method="POST", content="a=b")[0] == 415
        # Nor of a client that leaves before the end.
        with socket.create_connection(("127.0.0.1", port)) as wire:
            wire.sendall(
                b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n"
                b"Content-Type: multipart/form-data; boundary=b\r\n\r\n" + short[:-10]
            )
            wait_until(lambda: len(list(folder.iterdir())) > len(stored))
        wait_until(lambda: {path.name for path in folder.iterdir()} == stored)
    assert set(program.parent.iterdir()) == outside
    wrong = subprocess.run([program, folder / "none"], capture_output=True, check=False, timeout=20)
    assert wrong.returncode == 2


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


ASKED: dict[str, Callable[[Path], None]] = {
    "hello": ask_hello,
    "json_api": ask_json_api,
    "upload": ask_upload,
    "chat": ask_chat,
    "file_server": ask_file_server,
}


@pytest.mark.first
@pytest.mark.process
@pytest.mark.timeout(2000)
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
        # The library is optimized anew with each program that is linked, and each time alike.
        quick = [] if path is PROGRAMS[0] else ["-DCMAKE_EXE_LINKER_FLAGS=-fno-lto"]
        run(
            cmake, "-S", outside, "-B", outside / "build", f"-DCMAKE_PREFIX_PATH={prefix}", *cached,
            *quick, cwd=outside,
        )  # fmt: skip
        run(cmake, "--build", outside / "build", cwd=outside)
        ASKED[path.stem](outside / "build" / "app")
