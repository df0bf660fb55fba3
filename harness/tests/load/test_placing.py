"""The processors of server and generator."""

from __future__ import annotations

import os

import msgspec

from httpmark.harness.load import placing
from httpmark.harness.tests.shared.scripted_race import PLAN


def test_both_ends_never_share_a_processor() -> None:
    place = placing.placement(PLAN)
    if len(os.sched_getaffinity(0)) >= 2:
        assert place.server is not None
        assert place.client is not None
        assert place.server.isdisjoint(place.client)
    wide = msgspec.structs.replace(PLAN, workers=4096)
    assert placing.placement(wide) == placing.Placement(None, None)
