"""A server as the command line or a configuration file names it: ``NAME`` or ``NAME=HOW``."""

from __future__ import annotations

from pathlib import Path

import click

from httpmark.harness.servers import brought


class ServerWord(click.ParamType):  # type: ignore[type-arg]
    """A name, or a server that the user brings. A relative path begins in the working folder."""

    name = "server"

    def convert(
        self,
        value: str | brought.Brought,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | brought.Brought:
        return self.of_file(value, Path.cwd()) if isinstance(value, str) else value

    @staticmethod
    def of_file(value: str, folder: Path) -> str | brought.Brought:
        """The same in a configuration file, where a relative path begins in the file's folder."""
        return brought.read(value, folder) or value
