"""Plays on their way: what is believed, what is asked again, and in which order."""

from __future__ import annotations

from collections.abc import Iterator

from httpmark.harness.firing.play_queue import PlayQueue, is_whole
from httpmark.harness.firing.probe_frames import Play
from httpmark.harness.model.cases import Case
from httpmark.harness.model.exchanges import End, Exchange, ExchangeFlag, Outcome


def queue_of(*names: str, deadly: str = "") -> PlayQueue:
    plays = ((Case(name, name, ()), 1) for name in names)
    return PlayQueue(plays, lambda case: case.id == deadly)


def back(name: str, outcome: Outcome = Outcome.ANSWERED, end: End = End.OPEN) -> Exchange:
    return Exchange(name, name, b"", b"x", outcome, end, 1, 1, 1)


def names(plays: Iterator[Play]) -> list[str]:
    return [case.id for case, _ in plays]


def test_what_a_server_dies_of_is_left_out() -> None:
    assert names(iter(queue_of("a", "b", "c", deadly="b"))) == ["a", "c"]


def test_nothing_is_lost_where_it_is_stopped() -> None:
    queue = queue_of("a", "b", "c")
    plays = iter(queue)
    assert next(plays)[0].id == "a"
    queue.stop()
    assert list(plays) == []
    assert not queue.is_done
    assert names(iter(queue)) == ["b", "c"]
    assert queue.is_done


def test_what_was_spoiled_comes_first_again_in_its_order() -> None:
    queue = queue_of("a", "b", "c", "d")
    plays = iter(queue)
    for _ in range(3):
        next(plays)
    queue.stop()
    queue.came_back([back("c", Outcome.RESET, End.RESET), back("a")], 1.0)
    whole, spoiled = queue.parted()
    assert [one.play[0].id for one in whole] == ["a"]
    assert [one.play[0].id for one in spoiled] == ["b", "c"]
    queue.again(one.play for one in spoiled)
    assert names(iter(queue)) == ["b", "c", "d"]


def test_an_exchange_is_believed_once_the_server_answered_later() -> None:
    queue = queue_of("a", "b")
    list(queue)
    queue.came_back([back("a", Outcome.CLOSED, End.CLOSED)], 1.0)
    queue.came_back([back("b")], 1.2)
    doubtful = [queue.holds_doubtful]
    assert queue.believed(1.1) == []
    assert [one.play[0].id for one in queue.believed(1.3)] == ["a"]
    doubtful.append(queue.holds_doubtful)
    assert doubtful == [True, False]
    assert [one.play[0].id for one in queue.landed()] == ["b"]


def test_a_close_that_was_announced_spoils_nothing() -> None:
    assert not is_whole(back("a", end=End.CLOSED))
    announced = Exchange(
        "a", "a", b"", b"x", Outcome.ANSWERED, End.CLOSED, 1, 1, 1, ExchangeFlag.ANNOUNCED_CLOSE
    )
    assert is_whole(announced)
