"""How commands print: the one door to standard output and standard error."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click
import msgspec

from httpmark.harness.http.printable import terminal_text


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text: servers have a say in it, so a terminal obeys nothing in it."""
    click.echo(terminal_text(str(text)), err=err, nl=nl)


def note(text: str | None) -> None:
    """Say on standard error what does not change the result; nothing where there is no text."""
    if text is not None:
        echo(f"note: {text}", err=True)


def echo_styled(parts: Sequence[tuple[str, dict[str, str | bool]]]) -> None:
    """Print a line of which each part has a style of click's: only these are obeyed."""
    styled = (_styled(terminal_text(text), look) for text, look in parts)
    click.echo("".join(styled), color=True)


def _styled(text: str, look: dict[str, str | bool]) -> str:
    return click.style(text, **look) if look else text  # type: ignore[arg-type]


def print_json(value: object) -> None:
    """Print a result as indented JSON on standard output."""
    echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def is_github_action() -> bool:
    """Whether GitHub Actions runs this, and reads annotations from standard output."""
    return os.environ.get("GITHUB_ACTIONS") == "true"
