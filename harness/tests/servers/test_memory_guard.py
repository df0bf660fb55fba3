"""A server that takes too much memory is ended, and its end is told as what it was."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from httpmark.harness.model.servers import ProcessRecipe, Server
from httpmark.harness.servers import memory_guard, starting
from httpmark.harness.tests.shared.ports import own_port

GREEDY = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    held = []
    def do_GET(self):
        if self.path == "/more":
            self.held.append(bytearray(b"x" * (200 << 20)))
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *words): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def greedy() -> Server:
    start = ("{python}", "-c", GREEDY, "{port}")
    return Server(
        name="greedy", title="greedy", language="Python", version="0", homepage="",
        capabilities=("hello",), ready_timeout_s=30, process=ProcessRecipe(start=start),
    )  # fmt: skip


@pytest.mark.process
def test_who_takes_too_much_is_ended_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory_guard, "bound_kb", lambda: 150 << 10)
    port = own_port()
    one = starting.start(
        greedy(), "process", address="127.0.0.1", port=port, workers=1, cpus=None, run_id="g"
    )
    try:
        time.sleep(1.5)  # the guard has looked
        assert one.alive()
        subprocess.run(
            [sys.executable, "-c",
             f"import urllib.request; urllib.request.urlopen('http://127.0.0.1:{port}/more')"],
            stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        end = time.monotonic() + 30
        while one.alive() and time.monotonic() < end:
            time.sleep(0.05)
        assert not one.alive()
        told = r"ended by httpmark: it held 0\.\d GiB of memory, and one server may hold 0\.1 GiB"
        assert re.fullmatch(told, one.ending())
    finally:
        one.stop()


def test_the_bound_is_half_of_the_machine() -> None:
    total = int(Path("/proc/meminfo").read_text().split()[1])
    assert memory_guard.bound_kb() == pytest.approx(total / 2, rel=0.05)


def test_what_has_ended_holds_nothing() -> None:
    assert memory_guard.held_kb([1 << 30]) == 0
