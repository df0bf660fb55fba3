"""What can be wrong with an evidence file, each in one line with what to do."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from httpmark.harness.http import printable
from httpmark.harness.model.errors import MAKE_ROOM, HarnessError, NoRoom, Unusable
from httpmark.harness.model.exchanges import End, Outcome

# What holds of every row that was written. SQLite keeps a value of any kind in any column, and
# damage inside a value is whole to it.
_SOUND = {
    "server": "typeof(name) = 'text'",
    "item": "typeof(slug) = 'text' AND typeof(family) = 'text'",
    "octets": "typeof(value) = 'blob'",
    "exchange": (
        "typeof(delivery) = 'text' AND typeof(attempt) = 'integer'"
        f" AND typeof(outcome) = 'integer' AND outcome BETWEEN 0 AND {len(Outcome) - 1}"
        f" AND typeof(ending) = 'integer' AND ending BETWEEN 0 AND {len(End) - 1}"
        " AND typeof(flags) = 'integer' AND typeof(head_only) = 'integer'"
        " AND typeof(first_us) IN ('integer', 'null') AND typeof(end_us) = 'integer'"
        " AND typeof(sent_octets) = 'integer' AND typeof(machine_dropped) = 'integer'"
        " AND typeof(timeline) = 'blob' AND typeof(ended_s) IN ('real', 'null')"
    ),
    "facts": "typeof(value) = 'blob'",
    "observed": "typeof(slug) = 'text' AND typeof(value) = 'blob'",
    "agreed": "typeof(slug) = 'text' AND typeof(mode) = 'text' AND typeof(cuts) = 'integer'",
}


def trouble(path: Path, error: Exception) -> HarnessError:
    """What an error of SQLite or msgspec means for who uses the file, in one line, with what to do.

    :param path: of the evidence.
    """
    why = printable.one_line(str(error))
    if not isinstance(error, sqlite3.Error):
        return damaged(path, why)
    # What lies beside the file is mapped into memory: where it cannot grow, that is an IOERR.
    is_broken = getattr(error, "sqlite_errorname", "").startswith("SQLITE_IOERR")
    if "full" in why or is_broken:
        # SQLite sorts in the folder for temporary files.
        full = min((path, Path(tempfile.gettempdir())), key=_free)
        return NoRoom(f"{full}: the disk is full{' or broken' * is_broken}: {MAKE_ROOM}")
    if any(word in why for word in ("malformed", "corrupt", "decode")):
        return damaged(path, why)
    if "locked" in why:
        return HarnessError(f"{path}: another httpmark uses it: wait until it has ended")
    return HarnessError(f"{path}: {why}; is this an evidence file of httpmark?")


def damaged(path: Path, why: str) -> Unusable:
    return Unusable(
        f"{path}: damaged: {why}: the scores are whole: "
        f"httpmark report {path.parent} --format scoreboard"
    )


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """Tell what is wrong with the file, where it cannot be used inside.

    :raises HarnessError: it is no evidence file.
    :raises Unusable: it is damaged, or the disk is full.
    """
    try:
        yield
    except (sqlite3.Error, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise trouble(path, error) from None


def must_be_whole(base: sqlite3.Connection, path: Path) -> None:
    """Look at every page and every row.

    :raises HarnessError: it is no evidence file.
    :raises Unusable: it is damaged.
    """
    try:
        said = base.execute("PRAGMA quick_check(1)").fetchone()[0]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise damaged(path, printable.one_line(str(error))) from None
    if said != "ok":
        raise damaged(path, " ".join(str(said).split()))
    with told(path):
        for table, sound in _SOUND.items():
            query = f"SELECT 1 FROM {table} WHERE NOT ({sound}) LIMIT 1"
            if base.execute(query).fetchone() is not None:
                raise damaged(path, f"a row of {table} is not as it was written")


def _free(path: Path) -> int:
    """How many bytes there is room for; none where the place is gone."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(path).free
    return 0
