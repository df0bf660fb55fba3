"""Load profiles: those of the scenarios hold, and what does not go together is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.load import LoadMode, LoadPlan

GOOD = 'title = "t"\nwhy = "w"\nconnections = 4\ndepth = 2\nduration_s = 1.0\n'


def plan(tmp_path: Path, more: str) -> LoadPlan:
    place = tmp_path / "scenarios" / "load"
    place.mkdir(parents=True)
    (place / "p.toml").write_text(GOOD + more)
    return loading.load(tmp_path / "scenarios").plan("p")


def test_a_plan_is_read_with_what_it_leaves_out(tmp_path: Path) -> None:
    found = plan(tmp_path, "")
    assert (found.name, found.mode, found.refill, found.tls) == (
        "p", LoadMode.CLOSED, "batch", False,
    )  # fmt: skip


def test_a_mixed_load_is_read(tmp_path: Path) -> None:
    found = plan(tmp_path, '[[requests]]\nmethod = "POST"\ncontent = "x"\nweight = 3\n')
    assert found.requests[0].weight == 3
    assert found.requests[0].path == "/hello"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('mode = "open"\n', "'rate'"),
        ('mode = "open"\nrate = 1.0\nrate_of_capacity = 0.5\n', "'rate'"),
        ('mode = "open"\nrate = 0.0\n', "must be positive"),
        ("rate = 5.0\n", "belongs to mode"),
        ('mode = "idle"\n', "'ladder'"),
        ("ladder = [1, 2]\n", "'ladder'"),
        ('mode = "idle"\nladder = [5, 5]\n', "must grow"),
        ('mode = "idle"\nladder = [5]\n', "two heights"),
        ('mode = "idle"\nladder = [5, 6]\nquick_ladder = [6, 5]\n', "'quick_ladder'"),
        ('tls_ciphers = "x"\n', "goes with 'tls_version'"),
        ('tls_version = "1.2"\n', "'needs'"),
        ('tls_version = "1.1"\n', "tls_version"),
        ("split_bytes = -1\n", "'split_bytes'"),
        ("[[requests]]\nweight = 0\n", "'weight'"),
        ('[[requests]]\nmethood = "GET"\n', "methood"),
        ('mode = "opne"\n', "opne"),
    ],
)
def test_a_mistake_names_file_and_key(tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(HarnessError, match=r"scenarios/load/p\.toml") as caught:
        plan(tmp_path, more)
    assert said in str(caught.value)


def test_the_published_profiles_have_the_published_parameters() -> None:
    plans = loading.load().plans
    plain, tls = plans["published_plain"], plans["published_tls"]
    assert (plain.connections, plain.depth) == (tls.connections, tls.depth) == (512, 256)
    assert (tls.tls_version, tls.tls_ciphers) == ("1.2", "ECDHE-ECDSA-AES128-GCM-SHA256")
    many = plans["published_500k"]
    assert (many.connections, many.bind) == (500_000, "127.0.0.0/8")
    echo = plans["published_echo"]
    assert (echo.connections, echo.depth) == (200, 1)
    assert echo.path.startswith("/echo?")
    assert all(one.published for one in (plain, tls, many, echo))


def test_ours_are_there() -> None:
    plans = loading.load().plans
    depths = {one.depth for one in plans.values() if one.mode is LoadMode.CLOSED and not one.tls}
    assert {1, 16, 256} <= depths
    shares = {one.rate_of_capacity for one in plans.values() if one.rate_of_capacity}
    assert shares == {0.5, 0.7, 0.9}
    modes = {one.mode for one in plans.values()}
    assert modes == set(LoadMode)
    assert plans["mixed"].split_bytes > 0
    assert {request.method for request in plans["mixed"].requests} == {"GET", "HEAD", "POST"}
    handshakes = plans["tls_handshakes"]
    assert handshakes.mode is LoadMode.CHURN
    assert handshakes.tls_version == "1.3"
