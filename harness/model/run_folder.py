"""The folder of a run: the names of its files, and reading and writing its result."""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec

from httpmark.harness.model import digests
from httpmark.harness.model.errors import HarnessError, Unusable, not_written
from httpmark.harness.model.progress import undisturbed
from httpmark.harness.model.run import SCHEMA_VERSION, Run

RUNS = Path("httpmark-runs")
RESULT = "result.json"
EVIDENCE = "evidence.sqlite"
REPORT = "report.html"
LOG = "log.txt"
LATEST = "latest"  # the word for the newest run, wherever a run folder is asked


def folder(out: Path | None) -> Path:
    """Make the run folder: ``out``, or ``httpmark-runs/<UTC time>-<short id>``.

    :raises HarnessError: it holds a run already, or cannot be written.
    """
    now = datetime.datetime.now(datetime.UTC)
    path = out or RUNS / f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    is_ours = not path.exists()
    try:
        path.mkdir(parents=True, exist_ok=True)
        if (path / RESULT).exists() or (path / EVIDENCE).exists():
            raise HarnessError(f"{path} holds a run already: name another folder with --out")
        (path / LOG).write_text("", "utf-8")
        if is_ours:
            _MADE.append(path)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise not_written(path, error) from None
        raise HarnessError(f"{path}: {error.strerror}: name another folder with --out") from None
    return path


_MADE: list[Path] = []


def discard_unused() -> None:
    """Remove the run folders that this process made and that hold nothing yet: they tell nothing.

    One that another process writes by now stays.
    """
    for path in _MADE:
        with contextlib.suppress(OSError, HarnessError), held(path):
            if [one.name for one in path.iterdir()] == [LOG] and not (path / LOG).stat().st_size:
                (path / LOG).unlink()
                path.rmdir()
                if path.parent == RUNS:
                    path.parent.rmdir()  # where it holds no other run


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep a run folder from being written by two runs at once.

    :raises HarnessError: another run writes it now.
    """
    try:
        log = (path / LOG).open("a", encoding="utf-8")
    except OSError as error:
        raise HarnessError(f"{path / LOG}: {error.strerror}") from None
    with log:
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise HarnessError(
                f"{path}: another httpmark is writing this run: wait until it has ended"
            ) from None
        yield


class _Start(msgspec.Struct, frozen=True):
    started: str


def named(path: Path) -> Path:
    """The run folder that a user names; ``latest`` is the newest one in ``httpmark-runs``.

    :raises HarnessError: there is no run there.
    """
    if path != Path(LATEST) or (path / RESULT).is_file():
        return path
    found = [(_started(file), file.parent) for file in RUNS.glob(f"*/{RESULT}")]
    if not found:
        raise HarnessError(f"{LATEST}: there is no run in {RUNS} yet: name its folder")
    return max(found)[1]


def _started(file: Path) -> tuple[str, int]:
    """When a run began, to the second, and then which of two folders was made first."""
    try:
        began = msgspec.json.decode(file.read_bytes(), type=_Start).started
        return began, (file.parent / LOG).stat().st_mtime_ns
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "", 0  # no run, or an unfinished copy of one


_WRITTEN: list[Path] = []


def last_written() -> Path | None:
    """The run folder that this process wrote a result into last."""
    return _WRITTEN[-1] if _WRITTEN else None


def write(run: Run, path: Path) -> None:
    """Write ``result.json`` whole or not at all.

    :raises Unusable: the disk is full or the folder is gone.
    """
    fresh = path / (RESULT + ".part")
    # Read back once: a count given where a float is declared would be written otherwise next time.
    same = msgspec.json.decode(msgspec.json.encode(run), type=Run)
    with undisturbed():
        try:
            fresh.write_bytes(msgspec.json.format(msgspec.json.encode(same), indent=1))
            digests.forget(path / RESULT)
            os.replace(fresh, path / RESULT)
            digests.keep(path / RESULT)
            _WRITTEN[:] = [path]
        except OSError as error:
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise not_written(path / RESULT, error) from None


def read(path: Path) -> Run:
    """Read a run folder's result.

    :raises HarnessError: there is none, or it is no result of a schema this version knows.
    :raises Unusable: it is damaged.
    """
    file = path / RESULT
    mend = (
        f": make it again of the evidence: httpmark judge --from-evidence {path}"
        if (path / EVIDENCE).is_file()
        else ""
    )
    try:
        octets = file.read_bytes()
        if digests.differs(file):
            raise Unusable(f"{file}: damaged: it is not what was written{mend}")
        run = msgspec.json.decode(octets, type=Run)
    except OSError as error:
        if (path / EVIDENCE).is_file():
            raise HarnessError(
                f"{path}: the run was killed before it wrote a result: "
                f"make one of its evidence: httpmark judge {path}"
            ) from None
        raise HarnessError(f"{file}: {error.strerror}; is this a run folder?") from None
    except msgspec.ValidationError as error:
        raise HarnessError(f"{file}: not a result of httpmark: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unusable(f"{file}: damaged: {error}{mend}") from None
    if run.schema_version.split(".")[0] != SCHEMA_VERSION.split(".")[0]:
        raise HarnessError(
            f"{file}: schema {run.schema_version}; this httpmark reads {SCHEMA_VERSION}"
        )
    return run


def without_digests(path: Path) -> str | None:
    """What to say of a run folder in which damage may not be seen; None where it would be."""
    files = [file for name in (RESULT, EVIDENCE) if (file := path / name).is_file()]
    lacking = [file.name for file in files if not digests.is_known(file)]
    if not lacking:
        return None
    return f"{path} carries no digest of {' and '.join(lacking)}: damage may not be seen"


def now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
