"""What reads stored exchanges: the evidence file of a run, and what stands in for one in tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypedDict, Unpack

from httpmark.harness.model.cases import Facts
from httpmark.harness.model.exchanges import Exchange


class Wanted(TypedDict, total=False):
    """Which exchanges with a server are wanted: all of them, or only those named here."""

    family: str | None
    case: str | None
    delivery: str | None  # "whole" where it is not stated; None for all


class ExchangeReader(Protocol):
    """Gives the exchanges with a server, and what is known of the server."""

    def exchanges(self, server: str, **wanted: Unpack[Wanted]) -> Iterator[Exchange]:
        """The exchanges in case order."""
        ...  # pragma: no cover

    def facts(self, server: str) -> Facts | None:
        """Among others, where the server listens; None where nothing was kept."""
        ...  # pragma: no cover
