"""Files of a worker brought back in pieces, each checked by its SHA-256 digest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import Unusable

PIECE_BYTES = 4 << 20
NAMES = (run_folder.RESULT, run_folder.EVIDENCE)
"""The files of a run folder that are brought back; the report is drawn anew, and the lines
of the log come as progress."""
_TRIES = 3


class Listed(msgspec.Struct, frozen=True):
    """A file of a worker, and the digests of its pieces."""

    name: str
    digests: tuple[str, ...]


def listed(folder: Path) -> tuple[Listed, ...]:
    """What there is to bring back from a folder."""
    return tuple(
        Listed(name, _digests(folder / name)) for name in NAMES if (folder / name).is_file()
    )


def _digests(file: Path) -> tuple[str, ...]:
    found = []
    with file.open("rb") as stream:
        while piece := stream.read(PIECE_BYTES):
            found.append(hashlib.sha256(piece).hexdigest())
    return tuple(found)


def piece(folder: str, name: str, number: int) -> bytes:
    """A piece of a file. This runs on the worker."""
    with Path(folder, name).open("rb") as stream:
        stream.seek(number * PIECE_BYTES)
        return stream.read(PIECE_BYTES)


def bring(files: tuple[Listed, ...], into: Path, fetch: Callable[[str, int], object]) -> int:
    """Write files whole.

    :param fetch: gives a piece by the file's name and the piece's number, or an exception.
    :returns: how many bytes.
    :raises Unusable: a piece does not come, or comes damaged.
    """
    total = 0
    for one in files:
        if one.name not in NAMES:
            raise Unusable(f"a worker offers the file {one.name!r}, which nobody asked for")
        with (into / one.name).open("wb") as stream:
            for number, digest in enumerate(one.digests):
                total += stream.write(_whole(one.name, number, digest, fetch))
    return total


def _whole(name: str, number: int, digest: str, fetch: Callable[[str, int], object]) -> bytes:
    told: object = None
    for _ in range(_TRIES):
        told = fetch(name, number)
        if isinstance(told, bytes) and hashlib.sha256(told).hexdigest() == digest:
            return told
    why = "its digest is wrong" if isinstance(told, bytes) else str(told or "the worker is gone")
    raise Unusable(f"piece {number + 1} of {name} did not come whole: {why}")
