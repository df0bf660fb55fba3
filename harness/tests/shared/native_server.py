"""The reference server and the null server, started for a test."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator

from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared.ports import own_port, wait_listening


@contextlib.contextmanager
def listening(name: str, *more: str) -> Iterator[str]:
    """The reference ("server") or the null server, as the address it answers at; more options."""
    port = own_port()
    process = subprocess.Popen(
        [
            binaries.need(name), "--address", "127.0.0.1", "--port", str(port), "--workers", "1",
            *more,
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_listening(port, until=True, seconds=20)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.kill()
        process.wait()
