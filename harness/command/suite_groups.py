"""Which suites are fired in one go, so that their cases wait at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from httpmark.harness.catalogue.vocabulary import FORWARDING

# ``seed`` is the published benchmark and is fired as that one was; ``resilience`` may bring a
# target down; of ``forwarding`` the server is another one, a reverse proxy.
_BY_THEMSELVES = ("seed", "resilience", FORWARDING)

Group = tuple[str, ...]


def groups(suites: Sequence[str]) -> list[Group]:
    """The suites in groups, in the order of the first suite of each."""
    together = tuple(one for one in suites if one not in _BY_THEMSELVES)
    found = [(one,) for one in suites if one in _BY_THEMSELVES]
    return sorted([*found, together] if together else found, key=lambda one: suites.index(one[0]))
