"""The digests of a run folder's files, so that damage is seen: ``SHA256SUMS``, as sha256sum writes
it. ``sha256sum -c SHA256SUMS`` checks it without this program.

A file is forgotten before it is written and kept after it: a run that is killed has no digest of
what it was writing, and no wrong one.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

NAME = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def keep(file: Path) -> None:
    """Note what is in a file now.

    :raises OSError: it cannot be read, or there is no room.
    """
    digest = _digest(file)
    with _held(file.parent):
        _write(file.parent, _known(file.parent) | {file.name: digest})


def forget(file: Path) -> None:
    """Remove the digest of a file that is about to be written.

    :raises OSError: it cannot be removed.
    """
    with _held(file.parent):
        known = _known(file.parent)
        if known.pop(file.name, None) is not None:
            _write(file.parent, known)


def is_known(file: Path) -> bool:
    """Whether there is a digest of a file."""
    return file.name in _known(file.parent)


def differs(file: Path) -> bool:
    """Whether a file is not what was written; False where there is no digest of it.

    :raises OSError: the file cannot be read.
    """
    known = _known(file.parent).get(file.name)
    return known is not None and known != _digest(file)


def _digest(file: Path) -> str:
    with file.open("rb") as octets:
        return hashlib.file_digest(octets, "sha256").hexdigest()


def _known(folder: Path) -> dict[str, str]:
    try:
        text = (folder / NAME).read_text("ascii", errors="replace")
    except OSError:
        return {}
    return {found[2]: found[1] for line in text.splitlines() if (found := _LINE.fullmatch(line))}


def _write(folder: Path, known: dict[str, str]) -> None:
    """Write the file whole; without room it goes: no digest is better than an old one."""
    fresh = folder / f"{NAME}.part"
    try:
        fresh.write_text("".join(f"{known[name]}  {name}\n" for name in sorted(known)), "ascii")
        os.replace(fresh, folder / NAME)
    except OSError:
        for file in (fresh, folder / NAME):
            with contextlib.suppress(OSError):
                file.unlink()
        raise


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Let no other process change the digests of a folder meanwhile."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
