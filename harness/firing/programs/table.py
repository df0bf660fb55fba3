"""The programs by the name that scenarios give them (``runner``)."""

from __future__ import annotations

from httpmark.harness.firing.programs.bad_requests import (
    alive_after_each_family,
    gives_back,
    limit_sized_requests,
    not_restarted,
    thousand_bad_requests,
)
from httpmark.harness.firing.programs.late_readers import late_reader, websocket_late_reader
from httpmark.harness.firing.programs.neighbours import (
    clean_neighbours,
    same_verdicts_at_64,
    valid_load_among_bad_requests,
)
from httpmark.harness.firing.programs.pipelining import every_cut
from httpmark.harness.firing.programs.reflections import follow_redirect, markup_in_every_place
from httpmark.harness.firing.programs.resets import resets, resets_at_connect
from httpmark.harness.firing.programs.slow_clients import never_reading_client, slow_readers
from httpmark.harness.firing.programs.stage import Program

PROGRAMS: dict[str, Program] = {
    "alive_after_each_family": alive_after_each_family,
    "clean_neighbours": clean_neighbours,
    "every_cut": every_cut,
    "follow_redirect": follow_redirect,
    "gives_back": gives_back,
    "late_reader": late_reader,
    "limit_sized_requests": limit_sized_requests,
    "markup_in_every_place": markup_in_every_place,
    "never_reading_client": never_reading_client,
    "not_restarted": not_restarted,
    "resets": resets,
    "resets_at_connect": resets_at_connect,
    "same_verdicts_at_64": same_verdicts_at_64,
    "slow_readers": slow_readers,
    "thousand_bad_requests": thousand_bad_requests,
    "valid_load_among_bad_requests": valid_load_among_bad_requests,
    "websocket_late_reader": websocket_late_reader,
}


def program(name: str) -> Program:
    """The program of a name.

    :raises AssertionError: there is none; the catalogue takes no scenario with such a name.
    """
    if name not in PROGRAMS:
        raise AssertionError(f"unknown program {name!r}; known are {', '.join(PROGRAMS)}")
    return PROGRAMS[name]
