"""The table of abuse: what stands where, and what a page may not be made to say."""

from __future__ import annotations

from httpmark.harness.model.abuse import (
    Abused,
    AbuseReport,
    Done,
    Fate,
    Held,
    Honest,
    Suffered,
)
from httpmark.harness.report import abuse_text

QUIET = Honest(due=400, answered=400, p99_us=1000.0)
UNDER = Honest(due=400, answered=397, p99_us=4000.0, new_asked=20, new_answered=19)
HEADS = Suffered(
    scenario="slow-heads",
    fate=Fate.STARVED,
    quiet=QUIET,
    under=UNDER,
    p99_ratio=4.0,
    done=Done(seconds=2.0, opened=500, refused=0, held_max=500, sent_bytes=1),
    held=Held(pss_before_kb=1024, pss_peak_kb=2048, tcp_before_kb=10, tcp_peak_kb=1034),
    again_s=0.1,
)
FLOOD = Suffered(
    scenario="connects",
    fate=Fate.HELD,
    quiet=QUIET,
    under=Honest(due=400, answered=400, p99_us=2000.0, lag_p99_us=1500.0),
    p99_ratio=2.0,
    done=Done(seconds=2.0, opened=10_000, refused=0, held_max=500, sent_bytes=0),
)
TLS = Suffered(scenario="tls-handshakes", reason="it speaks no TLS")


def report(*servers: Abused) -> AbuseReport:
    return AbuseReport(
        rate=200.0, clients=10, seconds=2.0, quick=True, load_average=(0.5, 0.25, 0.125),
        processors=2, servers=servers,
    )  # fmt: skip


ONE = Abused(name="one", version="1.2", runtime="process", suffered=(HEADS, FLOOD, TLS))


def test_a_line_for_each_scenario_in_80_columns() -> None:
    lines = abuse_text.lines(report(ONE), 80)
    assert max(map(len, lines)) <= 80
    assert "one 1.2 (process)" in lines
    assert "p99 quiet: 1 ms" in lines
    [heads] = [line for line in lines if line.startswith("slow-heads")]
    assert heads.split() == [
        "slow-heads", "starved", "4", "ms", "4.00", "3", "19/20", "2.0", "MiB", "1.0", "MiB",
        "0.1", "s",
    ]  # fmt: skip
    [tls] = [line for line in lines if line.startswith("tls-handshakes")]
    assert tls.split() == ["tls-handshakes", "-"]


def test_what_lies_behind_the_figures_is_said() -> None:
    text = " ".join(" ".join(abuse_text.lines(report(ONE), 80)).split())
    assert "tls-handshakes: it speaks no TLS" in text
    assert "connects: 5.00 k connections a second were taken, of 10.0 k wanted" in text
    assert "connects: most of the p99 is the delay of this machine's load generator" in text
    assert "load before: 0.50, 0.25, 0.12" in text


def test_a_server_that_could_not_be_used_says_why() -> None:
    lines = abuse_text.lines(report(Abused(name="two", unavailable="it has no port")), 80)
    assert "  two: it has no port" in lines


def test_a_page_shows_all_servers_beside_each_other() -> None:
    other = Abused(name="two", runtime="process", suffered=(FLOOD,))
    page = abuse_text.markdown(report(ONE, other))
    assert "| scenario | one | two |" in page
    assert "| slow-heads | starved, 4.00 × | - |" in page
    assert "| connects | held, 2.00 × | held, 2.00 × |" in page
    assert "| slow-heads | starved | 1 ms | 4 ms | 4.00 | 3 | 19/20 | 2.0 MiB |" in page


def test_a_server_writes_no_markup_into_the_page() -> None:
    page = abuse_text.markdown(report(Abused(name="x", unavailable="<b>|\nrow|")))
    assert "<b>" not in page
    assert "- &lt;b>\\| row\\|" in page
