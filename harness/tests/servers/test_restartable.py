"""A server that is started again."""

from __future__ import annotations

from pathlib import Path

import pytest

from httpmark.harness.model.errors import Unusable
from httpmark.harness.servers.restartable import Restartable
from httpmark.harness.tests.shared.ports import own_port
from httpmark.harness.tests.shared.tiny_server import start, tiny, until

pytestmark = pytest.mark.process
ONE_SHOT = """
if os.path.exists(sys.path[0] + "/spent"):
    sys.exit("spent")
"""
DYING = """
import threading
print("\\x1b[31mno teeth", flush=True)
def die_when_told():
    while not os.path.exists(sys.path[0] + "/die"):
        time.sleep(0.01)
    os.abort()
threading.Thread(target=die_when_told, daemon=True).start()
"""


def test_it_is_started_again_at_its_place_and_tells_how_it_ended(tmp_path: Path) -> None:
    port, server = own_port(), tiny(tmp_path, DYING)
    one = Restartable(lambda: start(server, port=port))
    try:
        (tmp_path / "die").touch()
        assert until(lambda: one.death() is not None)
        (tmp_path / "die").unlink()
        assert one.ending() == "killed by SIGABRT"
        assert any("no teeth" in line for line in one.last_words())
        assert all(line.isprintable() for line in one.last_words())
        first = one.now
        one.restart()
        assert one.death() is None
        assert one.now is not first
        assert (one.now.port, one.starts) == (port, 2)
    finally:
        one.stop()


def test_a_server_that_does_not_start_again_is_said(tmp_path: Path) -> None:
    port, server = own_port(), tiny(tmp_path, ONE_SHOT)
    one = Restartable(lambda: start(server, port=port))
    (tmp_path / "spent").touch()
    with pytest.raises(Unusable, match="died at start: exit code 1: spent"):
        one.restart(patience_s=0.1)


DIES_WHEN_TOLD = """
import pathlib, threading
told = pathlib.Path(__file__).with_name("die")

def die():
    while not told.exists():
        time.sleep(0.01)
    os._exit(134)

threading.Thread(target=die, daemon=True).start()
"""


def test_an_exit_code_of_a_shell_names_the_signal(tmp_path: Path) -> None:
    port, server = own_port(), tiny(tmp_path, DIES_WHEN_TOLD)
    one = Restartable(lambda: start(server, port=port))
    (tmp_path / "die").touch()
    try:
        assert until(lambda: one.death() is not None)
        assert one.ending() == "exit code 134 (SIGABRT, as a shell tells it)"
    finally:
        one.stop()
