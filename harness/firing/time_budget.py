"""The time of a quick look, for which somebody waits."""

from __future__ import annotations

import time

import msgspec

# A quick look takes a little less than ten seconds; what is left after _END_S is for judging and
# for the report.
_BEGIN_S = 4.4
_WAIT_S = 4.9
_END_S = 6.5
# On a slow machine: what programs take, and what judging takes of each case.
_PROGRAMS_S = 1.6
_JUDGING_S = 85e-6

NOT_ASKED = "not asked: the time of a quick look was up"
NOT_AWAITED = "not waited for: the time of a quick look was up"


class TimeBudget(msgspec.Struct, frozen=True):
    """The deadlines of a quick look, as ``time.monotonic`` counts."""

    begin: float  # work that can wait may begin until then
    wait: float  # cases that are asked for the first time are broken off then
    end: float  # nothing that can wait is asked after that

    @classmethod
    def from_now(cls) -> TimeBudget:
        """The budget of a quick look that begins now."""
        now = time.monotonic()
        return cls(now + _BEGIN_S, now + _WAIT_S, now + _END_S)

    def is_up(self, asked: int) -> bool:
        """Whether there is no time for more cases than ``asked``: each one is judged later, too."""
        return time.monotonic() > min(self.begin, self.end - _PROGRAMS_S - asked * _JUDGING_S)
