"""No server that lies holds a command, fills the memory or makes it fall over.

Every command that talks to a target is put before every liar of ``shared.liars``, and watched from
outside. All of it takes an hour (``make nightly-liars``); a few of each run on every change.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from httpmark.harness.command import known_commands
from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared import liars, watched_command
from httpmark.harness.tests.shared.command_process import COMMAND, last_line

SECONDS = 60.0
# A turncoat answers plain questions, so its cases are asked, and each is waited for: that of a
# server which is silent to thousands of them takes so long.
TURNCOAT_SECONDS = 150.0
MEGABYTES = 300

LOAD = "httpmark-load"
COMMANDS: dict[str, tuple[str, ...]] = {
    LOAD: ("--duration-s", "1", "{target}"),
    "replay": ("replay", "get-plain", "{target}"),
    "replay --delivery": ("replay", "get-plain", "{target}", "--delivery", "two@17"),
    "replay --minimise": ("replay", "host-missing", "{target}", "--minimise"),
    "fuzz": ("fuzz", "{target}", "--seconds", "3", "--out", "found"),
    "fuzz two": ("fuzz", "{target}", "{target}hello", "--seconds", "3", "--out", "found"),
    "check --quick": ("check", "{target}", "--quick"),
    "bench": (
        "bench", "{target}", "--quick", "--profile", "keepalive", "--runtime", "process",
    ),
    "compare": (
        "compare", "{target}", "{target}hello", "--quick", "--pairs", "3", "--profile", "keepalive",
        "--runtime", "process",
    ),
    "abuse": ("abuse", "{target}", "--quick", "--scenario", "slow-heads"),
    "run --suite": ("run", "--server", "liar={target}", "--quick", "--suite", "rfc"),
    "run --profile": (
        "run", "--server", "liar={target}", "--quick", "--profile", "keepalive",
        "--runtime", "process",
    ),
}  # fmt: skip
# The exit codes that a command may have of a target that cannot be used, and of a turncoat.
# 0 and 1 of replay are the verdict of its one case, a plain GET; run gates nothing.
CODES: dict[str, tuple[set[int], set[int]]] = {
    LOAD: ({1}, {0}),
    "replay": ({1, 3, 4}, {0, 1, 3, 4}),
    "replay --delivery": ({0, 1, 3, 4}, {0, 1, 3, 4}),
    "replay --minimise": ({0, 1, 3, 4, 5}, {0, 1, 3, 4, 5}),
    "fuzz": ({1, 3}, {0, 1, 3}),
    "fuzz two": ({0, 3}, {0, 3}),
    "check --quick": ({1, 3}, {1, 3}),
    # 0 where some answers were good and others are counted as errors.
    "bench": ({0, 3}, {0}),
    "compare": ({0, 1, 3, 4}, {0, 1, 3, 4}),
    # 1 where the liar takes no connection afterwards.
    # 4 where this machine had no time for any abuser.
    "abuse": ({3}, {0, 1, 3, 4}),
    # run gates nothing: 0 where its report says that the liar is not scored.
    "run --suite": ({0, 3}, {0, 3}),
    "run --profile": ({0, 3}, {0}),
}
QUICK = [
    (LOAD, "endless-interims"),
    (LOAD, "trickled-body"),
    ("replay", "endless-trailers"),
    ("replay", "too-long"),
    ("check --quick", "endless-answers"),
    ("check --quick", "ten-gigabytes"),
]


def put_before(command: str, liar: str, folder: Path) -> None:
    """Put a command before a liar, and see that it keeps what is promised."""
    is_turncoat = liar.startswith("turncoat")
    is_check = command in ("check --quick", "run --suite")
    seconds = TURNCOAT_SECONDS if is_turncoat and is_check else SECONDS
    with liars.playing(liar) as port:
        target = f"http://127.0.0.1:{port}/"
        words = [word.replace("{target}", target) for word in COMMANDS[command]]
        program = (str(binaries.need("load")),) if command == LOAD else COMMAND
        seen = watched_command.run([*program, *words], cwd=folder, seconds=2 * seconds)
    told = f"{command} before {liar}: {seen}"
    assert "Traceback" not in seen.out + seen.errors, told
    assert "internal error" not in seen.errors, told
    assert "\x1b]" not in seen.out + seen.errors, told
    assert seen.code in CODES[command][is_turncoat], told
    assert seen.seconds < seconds, told
    assert seen.peak_mb < MEGABYTES, told
    if command == "run --suite" and seen.code == 0 and not is_turncoat:
        assert "liar: not scored: " in seen.out, told
    if seen.code == 3 and "report: " not in seen.out:
        assert last_line(seen.errors).startswith("httpmark: "), told


@pytest.mark.process
@pytest.mark.parametrize(("command", "liar"), QUICK)
def test_a_few_liars_break_no_command(command: str, liar: str, tmp_path: Path) -> None:
    put_before(command, liar, tmp_path)


@pytest.mark.nightly
@pytest.mark.process
@pytest.mark.timeout(2 * TURNCOAT_SECONDS + 60)
@pytest.mark.parametrize("liar", liars.GALLERY)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_liar_breaks_a_command(command: str, liar: str, tmp_path: Path) -> None:
    put_before(command, liar, tmp_path)


def test_each_command_that_takes_a_target_is_put_before_the_liars() -> None:
    """By the words of its help: a new one has to come into the table, or say here why not."""
    others = {
        # Their servers are started by httpmark, from images/.
        "calibrate", "forwarding", "images", "published",
        # They read what is stored, or what is installed.
        "cluster", "doctor", "explain", "export", "findings", "judge", "list", "report",
    }  # fmt: skip
    assert set(known_commands.names()) - others == {command.split()[0] for command in COMMANDS} - {
        LOAD
    }
