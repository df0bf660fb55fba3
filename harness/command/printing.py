"""How commands print results that programs read."""

from __future__ import annotations

import os
from typing import Any

import click
import msgspec


def print_json(value: Any) -> None:
    """Print a result as indented JSON on standard output."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def is_github_action() -> bool:
    """Whether GitHub Actions runs this, and reads annotations from standard output."""
    return os.environ.get("GITHUB_ACTIONS") == "true"
