"""The cache of builds: its folder, its locks and its logs, and what this run took from it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.servers import Server

Say = Callable[[str], None]


class Prepared:
    """The build or image that this run uses for a server, found once: a source that is edited
    during the run changes nothing of the run."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str, str], str] = {}

    def keep(self, server: Server, runtime: str, made: str) -> None:
        """:param made: the folder of the build, or the tag of the image."""
        self._made[runtime, server.name, server.source] = made
        _stamp(made)

    def names(self) -> list[str]:
        """The builds that this run uses: names of their folders, and tags of images."""
        return [_name_of(made) for made in self._made.values()]

    def of(self, server: Server, runtime: str) -> str | None:
        return self._made.get((runtime, server.name, server.source))


PREPARED = Prepared()


def _name_of(made: str) -> str:
    return Path(made).name if made.startswith("/") else made


def _stamp_file(name: str) -> Path:
    return cache_folder() / "used" / name.replace("/", ",")


def _stamp(made: str) -> None:
    """Note that a build is used now; not where the cache cannot be written."""
    with contextlib.suppress(OSError, HarnessError):
        file = _stamp_file(_name_of(made))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


def last_used(name: str) -> float | None:
    """When a build was last used, in seconds since 1970, by its folder's name or its tag."""
    with contextlib.suppress(OSError):
        return _stamp_file(name).stat().st_mtime
    return None


def cache_folder() -> Path:
    """Where builds and their logs are kept: ``$XDG_CACHE_HOME/httpmark`` or ``~/.cache/httpmark``.

    :raises HarnessError: neither the variable nor a home folder is known.
    """
    try:
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    except RuntimeError as error:
        raise HarnessError(f"no home folder: set XDG_CACHE_HOME ({error})") from error
    return Path(home) / "httpmark"


@contextlib.contextmanager
def locked_cache(name: str, *, say: Say) -> Iterator[None]:
    """Hold the cache's lock of that name, so that two runs do not build the same thing at once.

    :raises Unusable: the cache folder cannot be written.
    """
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"waiting for another run that does {name}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise Unusable(
            f"{folder}: {error.strerror or error}: make room, or set XDG_CACHE_HOME"
        ) from error


def log_file(name: str) -> Any:
    folder = cache_folder() / "log"
    folder.mkdir(parents=True, exist_ok=True)
    return (folder / f"{name}.log").open("w", encoding="utf-8")
