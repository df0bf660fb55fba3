"""What builds leave on the disk: the cache of local builds and the container images.

Each is named after its sources, so that an edited one is built anew and the old one stays. So what
was not used for long is removed, and the least recently used where all together are too large.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from httpmark.harness.model.errors import Unusable
from httpmark.harness.servers.build_cache import Say, cache_folder, last_used
from httpmark.harness.servers.docker_daemon import (
    LABEL,
    docker_errors,
    docker_trouble,
    talking_to_daemon,
)

DAYS = 30.0
GIB = 40.0
_VARIABLE = "HTTPMARK_CACHE_GIB"
_GIB_BYTES = 1 << 30
_DAY_S = 86400.0


class KeptBuild(msgspec.Struct, frozen=True, kw_only=True):
    """One build on the disk."""

    kind: str  # "process" or "docker"
    name: str  # the name of its folder, or the tag of its image
    bytes: int
    used: float  # seconds since 1970


def bound_gib() -> float:
    """What all builds may take, in GiB: the variable ``HTTPMARK_CACHE_GIB``, else 40."""
    with contextlib.suppress(ValueError):
        return float(os.environ.get(_VARIABLE, GIB))
    return GIB


def kept() -> list[KeptBuild]:
    """All builds, the least recently used first; images only where a Docker daemon answers."""
    found = [*_folders(), *(() if docker_trouble() else _images())]
    return sorted(found, key=lambda one: (one.used, one.name))


def _folders() -> Iterable[KeptBuild]:
    folder = cache_folder() / "build"
    for one in folder.iterdir() if folder.is_dir() else ():
        if one.suffix != ".partial":  # else it is being built
            size = sum(file.lstat().st_size for file in one.rglob("*") if not file.is_dir())
            used = last_used(one.name) or one.stat().st_mtime
            yield KeptBuild(kind="process", name=one.name, bytes=size, used=used)


def _images() -> Iterable[KeptBuild]:
    with talking_to_daemon("images cannot be listed") as client:
        for image in client.images.list(filters={"label": f"{LABEL}=1"}):
            made = datetime.datetime.fromisoformat(str(image.attrs["Created"])[:19] + "+00:00")
            for tag in image.tags:
                yield KeptBuild(
                    kind="docker",
                    name=tag,
                    bytes=int(image.attrs["Size"]),
                    used=last_used(tag) or made.timestamp(),
                )


def superfluous(
    builds: Sequence[KeptBuild], *, days: float, gib: float, now: float, needed: Iterable[str] = ()
) -> list[KeptBuild]:
    """What has to go: what was not used for so many days, then the least recently used until the
    rest is small enough.

    :param builds: the least recently used first.
    :param needed: names of builds that stay, whatever they take.
    """
    stay = set(needed)
    gone = [one for one in builds if one.name not in stay and now - one.used > days * _DAY_S]
    left = sum(one.bytes for one in builds) - sum(one.bytes for one in gone)
    for one in builds:
        if left <= gib * _GIB_BYTES:
            break
        if one.name not in stay and one not in gone:
            gone.append(one)
            left -= one.bytes
    return gone


def remove(builds: Iterable[KeptBuild]) -> tuple[list[KeptBuild], list[str]]:
    """Remove builds. One that is in use stays.

    :returns: what was removed, and why something was not.
    """
    removed, why = [], []
    for one in builds:
        try:
            if one.kind == "process":
                shutil.rmtree(cache_folder() / "build" / Path(one.name).name)
            else:
                with talking_to_daemon(f"{one.name} stays") as client:
                    client.images.remove(one.name)
        except (Unusable, OSError) as error:
            why.append(str(error))
        else:
            removed.append(one)
    return removed, why


def hold_bound(needed: Iterable[str], *, say: Say) -> None:
    """Remove the least recently used builds while all together are too large.

    :param needed: names of builds that stay: those that this run uses.
    """
    with contextlib.suppress(Unusable, *docker_errors()):
        builds = kept()
        gone = superfluous(
            builds, days=float("inf"), gib=bound_gib(), now=time.time(), needed=needed
        )
        for one in remove(gone)[0]:
            say(f"removed {one.name}: builds may take {bound_gib():g} GiB ({_VARIABLE})")
