"""A worker says what its machine has."""

from __future__ import annotations

import os
import time

from httpmark.harness.cluster import worker_facts
from httpmark.harness.servers import machine


def test_the_facts_are_those_of_this_machine() -> None:
    found = worker_facts.facts()
    assert found.version == machine.version()
    assert found.cores == len(os.sched_getaffinity(0))
    assert found.descriptors is None or found.descriptors > 0
    assert abs(worker_facts.clock() - time.time()) < 60
