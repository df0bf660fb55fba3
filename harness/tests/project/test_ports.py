"""Ports for the servers of tests."""

from __future__ import annotations

import concurrent.futures
import multiprocessing

import pytest

from httpmark.harness.tests.shared.ports import own_port


def several(count: int) -> list[int]:
    return [own_port() for _ in range(count)]


@pytest.mark.process
def test_no_two_tests_get_the_same_port() -> None:
    processes, count = 3, 20
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        drawn = [port for ports in pool.map(several, [count] * processes) for port in ports]
    assert len(set(drawn)) == processes * count
