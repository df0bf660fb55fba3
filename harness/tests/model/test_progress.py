"""An interruption waits for the end of what must be whole."""

from __future__ import annotations

import threading

import pytest

from httpmark.harness.model.progress import Interrupted, interrupt, undisturbed


def test_an_interruption_comes_at_once() -> None:
    with pytest.raises(Interrupted) as stop:
        interrupt(143)
    assert stop.value.signal == 15


def test_one_that_comes_meanwhile_waits_for_the_end_of_the_outermost_block() -> None:
    done = []

    def work() -> None:
        with undisturbed():
            with undisturbed():
                interrupt(130)
                done.append("inner")
            done.append("outer")

    with pytest.raises(Interrupted) as stop:
        work()
    assert done == ["inner", "outer"]
    assert stop.value.code == 130
    with undisturbed():
        pass  # it came once


def test_an_error_in_the_block_gives_way_to_it() -> None:
    def work() -> None:
        with undisturbed():
            interrupt(130)
            raise ValueError

    with pytest.raises(Interrupted):
        work()


def test_another_thread_holds_nothing_off() -> None:
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with undisturbed():
            entered.set()
            leave.wait(20)

    thread = threading.Thread(target=stay)
    thread.start()
    try:
        assert entered.wait(20)
        with pytest.raises(Interrupted):
            interrupt(130)
    finally:
        leave.set()
        thread.join()
