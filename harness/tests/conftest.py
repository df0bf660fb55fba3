"""What tests of several wings are given by name."""

from __future__ import annotations

from httpmark.harness.tests.shared.finished_run import finished as finished
