"""Judgements of single cases that no word of the language can state: ``talk.NAME`` in scenarios.

Each takes the case, the octets sent and what was seen, and says whether it is as asked (None where
this server cannot show it) and why not.
"""

from __future__ import annotations

from collections.abc import Callable

from httpmark.harness.model import Case
from httpmark.harness.observation import Sight

Talk = Callable[[Case, bytes, Sight], tuple[bool | None, str]]

TALKS: dict[str, Talk] = {}
