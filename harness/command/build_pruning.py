"""`httpmark images prune`: what is removed, what stays, and what both take."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from httpmark.harness.servers import kept_builds
from httpmark.harness.servers.kept_builds import KeptBuild

_MIB = 1 << 20
_DAY_S = 86400


class Pruning(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, as ``--json`` tells it."""

    dry_run: bool
    removed: tuple[KeptBuild, ...]  # of a dry run: what would be
    left: tuple[KeptBuild, ...]
    now: float  # seconds since 1970
    not_removed: tuple[str, ...] = ()  # why


def prune(*, days: float, gib: float, now: float, dry_run: bool) -> Pruning:
    """Remove what was not used for ``days``, and the least recently used above ``gib`` GiB."""
    builds = kept_builds.kept()
    gone = kept_builds.superfluous(builds, days=days, gib=gib, now=now)
    removed, why = (gone, []) if dry_run else kept_builds.remove(gone)
    return Pruning(
        dry_run=dry_run,
        removed=tuple(removed),
        left=tuple(one for one in builds if one not in removed),
        now=now,
        not_removed=tuple(why),
    )


def lines(done: Pruning) -> Iterator[str]:
    """The same for people."""
    word = "would remove" if done.dry_run else "removed"
    for one in done.removed:
        days = (done.now - one.used) / _DAY_S
        yield f"{word} {one.name} ({_size([one])}, used {days:.0f} days ago)"
    yield from done.not_removed
    yield (
        f"{word} {_counted(done.removed)} of {_size(done.removed)}; "
        f"{_counted(done.left)} of {_size(done.left)} left"
    )


def _size(builds: tuple[KeptBuild, ...] | list[KeptBuild]) -> str:
    return f"{sum(one.bytes for one in builds) / _MIB:,.0f} MiB"


def _counted(builds: tuple[KeptBuild, ...]) -> str:
    return f"{len(builds)} build{'' if len(builds) == 1 else 's'}"
