"""Dates of HTTP: the IMF-fixdate of RFC 9110, section 5.6.7."""

from __future__ import annotations

import datetime
import functools

from httpmark.harness.http import grammar

_MONTHS = {
    name: number + 1
    for number, name in enumerate(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())
}
_DAYS = b"Mon Tue Wed Thu Fri Sat Sun".split()


@functools.lru_cache(maxsize=1024)
def moment(value: bytes) -> float | None:
    """An IMF-fixdate as Unix time; None where it is none, or the weekday is wrong."""
    match = grammar.IMF_FIXDATE.fullmatch(value)
    if match is None:
        return None
    try:
        day = datetime.datetime(
            int(match[4]), _MONTHS[match[3]], int(match[2]), int(match[5]), int(match[6]),
            tzinfo=datetime.UTC,
        )  # fmt: skip
    except ValueError:
        return None
    if _DAYS[day.weekday()] != match[1]:
        return None
    return day.timestamp() + int(match[7])
