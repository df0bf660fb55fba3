"""What machine this was: repeatable, and without anything private."""

from __future__ import annotations

import os
import platform

import msgspec
import pytest

from httpmark.harness import binaries, environment


def test_the_fingerprint_repeats() -> None:
    assert environment.capture()["fingerprint"] == environment.capture()["fingerprint"]


def test_nothing_private_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPMARK_TEST_SECRET", "do-not-publish-me")
    text = msgspec.json.encode(environment.capture()).decode()
    assert "do-not-publish-me" not in text
    assert f'"{platform.node()}"' not in text
    assert os.path.expanduser("~") not in text


def test_doctor_mends_only_what_is_broken() -> None:
    checks = environment.doctor()
    assert {f"httpmark-{name}" for name in binaries.NAMES} <= {check.name for check in checks}
    assert all(check.mend is None for check in checks if check.ok)
    assert all(check.mend for check in checks if not check.ok)


def test_doctor_looks_at_the_connection_tracking_table() -> None:
    assert "connection tracking" in {check.name for check in environment.doctor()}


def test_executables_are_those_of_the_contract() -> None:
    assert list(environment.executables()) == ["server", "load", "probe", "null"]
