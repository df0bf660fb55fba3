"""Progress lines on standard error: they hold names and logs of servers, which are not trusted."""

from __future__ import annotations

import pytest

from httpmark.harness.command import progress_display
from httpmark.harness.command.again_progress import AgainProgress


@pytest.mark.parametrize("shown", [progress_display.PlainLines, progress_display.Bars])
def test_a_line_of_progress_holds_nothing_that_a_terminal_obeys(
    shown: type[progress_display.PlainLines | progress_display.Bars],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with shown() as events:
        events.say("said \x1b[2J\x07")
        events.task("server", 3)
        events.advance("server", 3)
        events.done("server", "died: \x9b31m\x1b]0;owned")
    told = capsys.readouterr().err
    assert "said" in told
    assert "died:" in told
    assert not {"\x07", "\x9b"} & set(told)
    assert "\x1b]" not in told
    assert "\x1b[2J" not in told


class Heard:
    """Notes what a task tells."""

    def __init__(self) -> None:
        self.said: list[tuple[object, ...]] = []

    def say(self, line: str) -> None:
        self.said.append(("say", line))

    def task(self, name: str, total: int) -> None:
        self.said.append(("task", name, total))

    def advance(self, name: str, by: int) -> None:
        self.said.append(("advance", by))

    def done(self, name: str, result: str) -> None:
        self.said.append(("done", name, result))


def test_rounds_of_asking_again_move_one_task() -> None:
    heard = Heard()
    again = AgainProgress(heard, "rfc: target")
    again.begin(2)(2)
    count = again.begin(1001)
    count(1000)
    count(1)
    again.done()
    name = "rfc: target, asked again"
    assert heard.said == [
        ("task", name, 2), ("advance", 2),
        ("task", name, 1001), ("advance", 1000), ("advance", 1),
        ("done", name, "1,003 requests"),
    ]  # fmt: skip


def test_nothing_that_is_asked_again_says_nothing() -> None:
    heard = Heard()
    again = AgainProgress(heard, "rfc: target")
    again.begin(0)(0)
    again.done()
    assert heard.said == []


@pytest.mark.parametrize("shown", [progress_display.PlainLines, progress_display.Bars])
def test_a_task_that_begins_once_more_starts_again_in_its_place(
    shown: type[progress_display.PlainLines | progress_display.Bars],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with shown() as events:
        for total in (3, 5):
            events.task("asked again", total)
            events.advance("asked again", total)
        events.done("asked again", "8 requests")
    assert capsys.readouterr().err.count("asked again: 8 requests") == 1
