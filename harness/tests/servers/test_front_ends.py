"""Servers as reverse proxies: what their manifests say, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.servers import front_ends, manifests, starting

MANIFEST = """
name = "front"
title = "Front"
language = "C"
version = "1"
homepage = "https://example.org/"
capabilities = ["hello", "static"]

[process]
start = ["no-such-program", "{port}"]
files = { "a.conf" = "of the origin" }
conformance = ["--quick"]
env = { A = "b" }

[[process.needs]]
command = "no-such-program"
install = "apt-get install nothing"

[proxy]
start = ["no-such-program", "{scratch}/b.conf"]
files = { "b.conf" = "listen {endpoint} to {origin} or {origin_host} and {origin_port}" }
"""


def read(folder: Path, text: str) -> None:
    (folder / "front").mkdir(exist_ok=True)
    (folder / "front" / "server.toml").write_text(text)
    manifests.read(folder / "front" / "server.toml")


def test_a_proxy_has_its_own_words_and_files_and_the_needs_of_the_process(tmp_path: Path) -> None:
    read(tmp_path, MANIFEST)
    server = manifests.read(tmp_path / "front" / "server.toml")
    one = front_ends.as_proxy(server, "::1", 81)
    assert one.process is not None
    assert one.process.files == {"b.conf": "listen {endpoint} to [::1]:81 or ::1 and 81"}
    assert one.process.start == ("no-such-program", "{scratch}/b.conf")
    assert (one.process.conformance, one.process.env) == ((), {"A": "b"})
    assert one.capabilities == ("hello",)
    assert front_ends.trouble(server) == "no-such-program not found: apt-get install nothing"


def test_a_server_without_the_table_is_no_proxy() -> None:
    server = manifests.server("null")
    assert front_ends.trouble(server) == "its server.toml has no [proxy]"
    with pytest.raises(Unusable, match=r"has no \[proxy\]"):
        front_ends.as_proxy(server, "127.0.0.1", 81)


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("{origin} or {origin_host} and {origin_port}", "", "proxy.start: nothing says where the"),
        ("listen {endpoint}", "listen", "proxy.start: nothing says where it listens: write {port}"),
        ('"{scratch}/b.conf"', '"{tls_port}"', "proxy.start: {tls_port} is not filled in"),
        ('"b.conf" =', '"a/b.conf" =', "proxy.files: 'a/b.conf': give a plain file name"),
        ("[process]\nstart", "[proces]\nstart", "proces: no such key"),
        ('start = ["no-such-program", "{scratch}/b.conf"]', "start = []", "proxy.start: is empty"),
    ],
)
def test_each_mistake_is_told(tmp_path: Path, before: str, after: str, complaint: str) -> None:
    assert before in MANIFEST
    with pytest.raises(HarnessError) as told:
        read(tmp_path, MANIFEST.replace(before, after))
    assert complaint in str(told.value)


def test_the_listing_names_the_capability() -> None:
    listed = starting.listed(manifests.server("nginx"))
    assert "proxy" in listed["capabilities"]
    assert "proxy" not in starting.listed(manifests.server("null"))["capabilities"]
