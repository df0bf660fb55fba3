"""Planted files: what stands where, and what is learned of them."""

from __future__ import annotations

import time
from pathlib import Path

from httpmark.harness.model.cases import FILE_TEXT, SECRET_TEXT, STATIC_FILE_FACTS, Facts
from httpmark.harness.servers import static_files

STATIC = Facts(host="a", capabilities=("hello", "static"))


def answer(fields: bytes, content: bytes = FILE_TEXT.encode()) -> bytes:
    return b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (fields, len(content), content)


def test_the_secret_stands_above_the_folder_and_a_link_leads_to_it(tmp_path: Path) -> None:
    static_files.plant(tmp_path)
    folder = tmp_path / static_files.FOLDER
    assert {path.name for path in folder.iterdir()} == {
        "ok.html", ".hidden", "sub", "link-out", "future.html",
    }  # fmt: skip
    assert (folder / "link-out").read_text() == SECRET_TEXT
    assert (folder / "ok.html").read_text() == FILE_TEXT
    assert SECRET_TEXT not in FILE_TEXT
    assert (folder / "future.html").stat().st_mtime > time.time() + 86400
    assert (folder / "ok.html").stat().st_mtime < time.time() - 86400


def test_all_is_learned_of_a_server_that_says_all() -> None:
    asked: list[bytes] = []

    def ask(octets: bytes) -> bytes:
        asked.append(octets)
        return answer(b'ETag: "x"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n')

    found = static_files.learned(ask, STATIC)
    assert asked[0].startswith(b"GET /static/ok.html HTTP/1.1\r\n")
    assert set(found) == set(STATIC_FILE_FACTS)
    assert found["etag"] == '"x"'
    assert found["modified_rfc850"] == "Sunday, 06-Nov-94 08:49:37 GMT"
    assert found["modified_asctime"] == "Sun Nov  6 08:49:37 1994"


def test_what_a_server_does_not_say_is_left_out() -> None:
    assert set(static_files.learned(lambda _: answer(b""), STATIC)) == {
        "secret", "secret_text", "file_text",
    }  # fmt: skip
    odd = answer(b"Last-Modified: yesterday\r\n")
    assert "modified" not in static_files.learned(lambda _: odd, STATIC)


def test_nothing_is_learned_where_the_files_are_not_served() -> None:
    assert static_files.learned(lambda _: answer(b""), Facts(host="a")) == {}
    assert static_files.learned(lambda _: answer(b"", b"Hello World!"), STATIC) == {}
    assert static_files.learned(lambda _: None, STATIC) == {}
    assert static_files.learned(lambda _: b"garbage", STATIC) == {}
