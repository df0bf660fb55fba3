"""Placeholders, files and words of one start."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from httpmark.harness.tests.shared.tiny_server import start, tiny

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.mark.process
def test_files_and_variables_are_filled_in(tmp_path: Path) -> None:
    recipe = tiny(tmp_path).process
    assert recipe is not None
    manner = "print(open('odd.conf').read(), os.environ['ODD'], flush=True)"
    filled = msgspec.structs.replace(
        recipe, files={"odd.conf": "listen {endpoint}; { keep }"}, env={"ODD": "w{workers}"}
    )
    one = start(tiny(tmp_path, manner, process=filled))
    assert one.log_tail().splitlines()[-1] == f"listen 127.0.0.1:{one.port}; {{ keep }} w1"


@pytest.mark.process
def test_where_suites_are_fired_a_server_gets_what_is_added_for_them(tmp_path: Path) -> None:
    recipe = tiny(tmp_path).process
    assert recipe is not None
    manner = "print(sys.argv[4:], os.path.exists('short.conf'), flush=True)"
    added = msgspec.structs.replace(
        recipe, conformance=("--short", "{port}"), conformance_files={"short.conf": "5s"}
    )
    server = tiny(tmp_path, manner, process=added)
    one = start(server, conformance=True)
    assert one.log_tail().splitlines()[-1] == f"['--short', '{one.port}'] True"
    other = start(server)
    assert other.log_tail().splitlines()[-1] == "[] False"
