"""A server as a container on the host's network; sweeping up what dead runs left."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import signal
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.servers import Server, Tls
from httpmark.harness.servers import (
    container_rights,
    proc_files,
    running,
    scratch_folders,
    static_files,
)

if TYPE_CHECKING:
    from docker.models.containers import Container
from httpmark.harness.servers.build_cache import PREPARED
from httpmark.harness.servers.docker_daemon import (
    LABEL,
    docker_client,
    docker_errors,
    docker_trouble,
    talking_to_daemon,
)
from httpmark.harness.servers.docker_images import add_to_archive, image_tag
from httpmark.harness.servers.memory_guard import MemoryGuard
from httpmark.harness.servers.needs import no_recipe, version_in
from httpmark.harness.servers.processes import signal_name
from httpmark.harness.servers.running import LOG_TAIL_LINES, RUNNING, last_line, wait_port_free
from httpmark.harness.servers.start_words import (
    filled,
    placeholder_values,
    start_files,
    start_words,
    tls_values,
)

_VERSION_TRIES = 3  # a busy daemon now and then loses what a short command prints
# A volume of its own. Its top belongs to root, so what {scratch} is in a container lies below.
_VOLUME = "/httpmark"
_SCRATCH = "scratch"
_IN_CONTAINER = f"{_VOLUME}/{_SCRATCH}"


def _start_time(pid: int) -> int | None:
    """When a process began, in ticks since boot: with the pid it names one process."""
    try:
        return int(proc_files.stat_fields(pid)[proc_files.Stat.START_TICKS])
    except (OSError, IndexError, ValueError):
        return None


def _boot() -> str:
    """This boot and this pid namespace: within them a pid and its start time name one process."""
    with contextlib.suppress(OSError):
        boot = proc_files.text("sys/kernel/random/boot_id").strip()
        return f"{boot} {proc_files.link('self', 'ns', 'pid')}"
    return ""


def _labels() -> dict[str, str]:
    pid = os.getpid()
    return {
        LABEL: "1",
        f"{LABEL}.owner": f"{pid}-{_start_time(pid)}",
        f"{LABEL}.boot": _boot(),
    }


def _owner_lives(labels: dict[str, str]) -> bool:
    pid, _, started = labels.get(f"{LABEL}.owner", "").partition("-")
    boot, _, namespace = labels.get(f"{LABEL}.boot", "").partition(" ")
    our_boot, _, our_namespace = _boot().partition(" ")
    if boot != our_boot:
        return False
    if namespace != our_namespace:
        return True  # its pids mean nothing to us: leave it alone
    return pid.isdigit() and str(_start_time(int(pid))) == started


def sweep() -> list[str]:
    """Remove the containers of harnesses that are dead; their names. Never those of a living one.

    Without a usable daemon there is nothing to remove.
    """
    if docker_trouble():
        return []
    removed: list[str] = []
    with contextlib.suppress(Unusable), talking_to_daemon("containers cannot be listed") as client:
        for one in client.api.containers(all=True, filters={"label": f"{LABEL}.owner"}):
            if not _owner_lives(one["Labels"]):
                client.api.remove_container(one["Id"], force=True, v=True)
                removed.append(one["Names"][0].removeprefix("/"))
    return removed


NOT_REMOVED: list[str] = []
"""Containers that this process could not remove, as no daemon answered."""


class _ImageVersions:
    """The versions that servers in containers told, each asked once an image."""

    def __init__(self) -> None:
        self._told: dict[str, str | None] = {}

    def of(self, image: str, ask: Callable[[], str | None]) -> str | None:
        if image not in self._told:
            self._told[image] = ask()
        return self._told[image]


_VERSIONS = _ImageVersions()


class ContainerServer:
    """A server as a container on the host's network."""

    runtime = "docker"

    def __init__(self, server: Server, *, address: str, port: int, name: str) -> None:
        self.server = server
        self.address = address
        self.port = port
        self.tls_port: int | None = None
        self.name = name
        self.cgroup: str | None = None
        self.version: str | None = None
        self.image_digest: str | None = None
        self._container: Container | None = None
        self._pid = 0
        self._begun_ticks: int | None = None
        self.is_deaf = False  # to SIGTERM, as it is known once it was stopped
        self._begun = False
        self._ended = ""
        self._tail = ""
        self._version_words: tuple[str, ...] = ()
        self._guard: MemoryGuard | None = None

    def begin(self, *, workers: int, cpus: str | None, tls: Tls | None, conformance: bool) -> None:
        from docker.types import Ulimit

        recipe = self.server.container
        if recipe is None:
            raise Unusable(no_recipe(self.server, "container"))
        values = placeholder_values(self.address, self.port, workers, _IN_CONTAINER)
        texts = start_files(recipe, tls=tls is not None, conformance=conformance)
        if tls is not None:
            self.tls_port = tls.port
            given = {"tls_cert": tls.cert, "tls_key": tls.key}
            inside = {name: f"{_IN_CONTAINER}/{name}.pem" for name in given}
            values |= tls_values(self.address, tls, inside["tls_cert"], inside["tls_key"])
        texts = {name: filled(text, **values) for name, text in texts.items()}
        if tls is not None:
            try:
                texts |= {f"{name}.pem": Path(path).read_text() for name, path in given.items()}
            except OSError as error:
                raise Unusable(f"{error.filename}: {error.strerror}") from error
        words = [
            filled(word, **values)
            for word in start_words(recipe, tls=tls is not None, conformance=conformance)
        ]
        self._version_words = tuple(filled(word, **values) for word in recipe.version)
        # The machine's hard limit, never above: a daemon without the right to raise it refuses.
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        with talking_to_daemon("its container cannot be started") as client:
            self._begun = True
            self._container = client.containers.create(
                PREPARED.of(self.server, "docker") or image_tag(self.server),
                # Without a start, the words go after the image's own ENTRYPOINT.
                command=(words[1:] if recipe.start else words) or None,
                entrypoint=(words[:1] if recipe.start else []) or None,
                name=self.name,
                labels=_labels(),
                environment={name: filled(text, **values) for name, text in recipe.env.items()},
                network_mode="host",
                cpuset_cpus=cpus,
                ulimits=[Ulimit(name="nofile", soft=files, hard=files)] if files > 0 else None,
                **container_rights.bounds(recipe, volume=_VOLUME),
            )
            is_static = "static" in self.server.capabilities
            archive = _scratch_archive(texts, with_static=is_static)
            self._container.put_archive(_VOLUME, archive)
            self._container.start()
            self._container.reload()
            self._pid = int(self._container.attrs["State"]["Pid"])
            self._begun_ticks = _start_time(self._pid)
            image = self._container.image
            self.image_digest = image.id if image is not None else None
            self.cgroup = _memory_cgroup(self._pid)
            # Without a question to the daemon, as it looks while the server is measured, too.
            self._guard = MemoryGuard(lambda: proc_files.tree([self._pid]))

    def ready(self) -> None:
        if self._version_words:
            self.version = _VERSIONS.of(self.image_digest or self.name, self._ask_version)

    def _ask_version(self) -> str | None:
        assert self._container is not None
        for _ in range(_VERSION_TRIES):
            with talking_to_daemon("its version cannot be asked"):
                code, told = self._container.exec_run(list(self._version_words))
            text = told.decode(errors="replace") if isinstance(told, bytes) else ""
            if code == 0 and (version := version_in(text)) is not None:
                return version
        return None

    def _state(self) -> dict[str, Any] | None:
        """What the daemon says of it: nothing of a container that is gone; None where no daemon
        answers any more."""
        from docker.errors import NotFound

        if self._container is None:
            return {}
        with contextlib.suppress(Unusable), talking_to_daemon("its state cannot be asked"):
            try:
                self._container.reload()
            except NotFound:
                return {}
            return dict(self._container.attrs["State"])
        return None

    def _runs_unseen(self) -> bool:
        """Whether its first process lives: a server does not die with the daemon."""
        return self._begun_ticks is not None and _start_time(self._pid) == self._begun_ticks

    def pids(self) -> list[int]:
        if not self._pid or not self.alive():
            return []
        return sorted([self._pid, *proc_files.descendants(self._pid)])

    def trees(self) -> list[int]:
        # The first process of a container inherits what loses its parent (pid_namespaces(7)).
        return [self._pid] if self._pid and self.alive() else []

    def alive(self) -> bool:
        state = self._state()
        return self._runs_unseen() if state is None else bool(state.get("Running"))

    def ending(self) -> str:
        if self._guard is not None and self._guard.told:
            return self._guard.told
        state = self._state()
        if state is None:
            return "still runs" if self._runs_unseen() else "the Docker daemon answers no more"
        if state.get("Running"):
            return "still runs"
        code = state.get("ExitCode")
        if state.get("OOMKilled"):
            return "killed: out of memory"
        if state.get("Error"):
            return " ".join(str(state["Error"]).split())
        if code is None:
            return "its container is gone"
        # A container tells a signal as 128 and its number.
        return signal_name(code - 128) if code > 128 else f"exit code {code}"

    def exit_reason(self) -> str:
        if self._ended:
            return self._ended
        how = self.ending()
        last = "" if how == "still runs" else last_line(self.log_tail())
        return f"{how}: {last}" if last else how

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        if self._container is not None:
            with contextlib.suppress(Unusable), talking_to_daemon("its log cannot be read"):
                log: bytes = self._container.logs(stream=False, tail=LOG_TAIL_LINES)
                self._tail = log.decode(errors="replace")
        return "\n".join(self._tail.splitlines()[-lines:])

    def stop(self) -> None:
        from docker.errors import NotFound

        if self._guard is not None:
            self._guard.stop()
        if self._begun:
            # By name: Ctrl-C may have come before the daemon told us what it made.
            # Who cannot be asked keeps it; it is told, and the next run removes it.
            NOT_REMOVED.append(self.name)
            with contextlib.suppress(*docker_errors()):
                client = docker_client()
                try:
                    self.log_tail()
                    # The first process of a container never gets a SIGTERM that it does not catch.
                    self.is_deaf = not _catches(self._pid, signal.SIGTERM)
                    grace_s = 0 if self.is_deaf else running.STOP_GRACE_S
                    client.api.stop(self.name, timeout=int(grace_s))
                    self._ended = self.exit_reason()
                    client.api.remove_container(self.name, force=True, v=True)
                except NotFound:
                    pass
                NOT_REMOVED.remove(self.name)
            wait_port_free(self.address, self.port)
            self._begun = False
            self._container = None
        RUNNING.remove(self)


def _catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal; True where that cannot be known."""
    try:
        status = proc_files.text(pid, "status").splitlines()
        caught = next(line for line in status if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (number - 1) & 1)
    except (OSError, StopIteration, ValueError):
        return True


def _scratch_archive(files: dict[str, str], *, with_static: bool = False) -> bytes:
    """The scratch folder of a container, for whatever user its image names."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        folder = tarfile.TarInfo(_SCRATCH)
        folder.type = tarfile.DIRTYPE
        folder.mode = 0o777
        tar.addfile(folder)
        for name, text in files.items():
            add_to_archive(tar, f"{folder.name}/{name}", text.encode())
        if with_static:
            with scratch_folders.folder("static") as made:
                static_files.plant(made)
                for entry in sorted(made.iterdir()):
                    tar.add(entry, f"{folder.name}/{entry.name}", filter=_of_root)
    return archive.getvalue()


def _of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def _memory_cgroup(pid: int) -> str | None:
    """The folder of a process's memory controller, where this machine shows one."""
    with contextlib.suppress(OSError):
        for line in proc_files.text(pid, "cgroup").splitlines():
            _, controllers, place = line.split(":", 2)
            root = "/sys/fs/cgroup" + ("/memory" if controllers else "")
            wanted = not controllers or "memory" in controllers.split(",")
            if wanted and place != "/" and os.path.isdir(root + place):
                return root + place
    return None
