"""Progress lines on standard error: they hold names and logs of servers, which are not trusted."""

from __future__ import annotations

import pytest

from httpmark.harness.command import progress_display


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
