"""The reference server and the null server, started for a test."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator

import pytest

from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared.ports import own_port, wait_listening


@contextlib.contextmanager
def listening(name: str, *more: str) -> Iterator[str]:
    """The reference ("server") or the null server, as the address it answers at; more options."""
    port = own_port()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [
                binaries.need(name), "--address", "127.0.0.1", "--port", str(port),
                "--workers", "1", *more,
            ],
            stdout=subprocess.DEVNULL, stderr=errors,
        )  # fmt: skip
        try:
            try:
                wait_listening(port, until=True, seconds=20)
            except AssertionError:
                errors.seek(0)
                said = errors.read().decode("utf-8", "replace").strip()
                pytest.fail(f"nobody listens on port {port}; exit {process.poll()}: {said}")
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.kill()
            process.wait()
