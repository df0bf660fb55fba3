"""Dask's own scheduler and worker programs, as they are started by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from httpmark.harness.servers import certificates
from httpmark.harness.tests.shared import child_process, ports


class Programs:
    """A scheduler and workers."""

    def __init__(
        self,
        folder: Path,
        *resources: str,
        tls: bool = True,
        variables: Mapping[int, Mapping[str, str]] = MappingProxyType({}),
    ) -> None:
        """:param resources: of each worker.
        :param tls: they talk TLS, and whoever calls them needs the same environment.
        :param variables: of the environment of single workers, by number."""
        self.environment = _tls(folder) if tls else {}
        self.url = f"{'tls' if tls else 'tcp'}://127.0.0.1:{ports.own_port()}"
        self._folder = folder
        port = self.url.rpartition(":")[2]
        self.scheduler = self._start(
            "scheduler", "--host", self.url.rpartition(":")[0], "--port", port, "--no-dashboard"
        )
        ports.wait_listening(int(port), until=True, seconds=60)
        self.workers: list[subprocess.Popen[str]] = []
        for number, one in enumerate(resources):
            self.add(one, **variables.get(number, {}))

    def add(self, resources: str, **variables: str) -> None:
        """Start one more worker; its name is its number."""
        number = len(self.workers)
        self.workers.append(
            self._start(
                "worker", self.url, "--nthreads", "1", "--resources", resources, "--no-dashboard",
                "--name", f"worker-{number}", number=number, **variables,
            )
        )  # fmt: skip

    def _start(self, *words: str, number: int = 0, **variables: str) -> subprocess.Popen[str]:
        with (self._folder / f"{words[0]}{number}.log").open("w") as log:
            return child_process.start(
                [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]],
                env={**os.environ, **self.environment, **variables}, cwd=self._folder,
                stdout=log, stderr=log,
            )  # fmt: skip

    def stop(self) -> None:
        for one in (*self.workers, self.scheduler):
            one.terminate()
        for one in (*self.workers, self.scheduler):
            try:
                one.wait(timeout=20)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait(timeout=20)


def _tls(folder: Path) -> dict[str, str]:
    """The environment of who talks TLS with the others."""
    authority = certificates.Authority(folder)
    pair = authority.server()
    found = {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}
    found["DASK_DISTRIBUTED__COMM__TLS__CA_FILE"] = authority.certificate
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        prefix = f"DASK_DISTRIBUTED__COMM__TLS__{role}__"
        found[f"{prefix}CERT"] = pair.certificate
        found[f"{prefix}KEY"] = pair.key
    return found
