"""The word after --cluster names a scheduler, hosts, or workers of this machine."""

from __future__ import annotations

import pytest

from httpmark.harness.cluster.addresses import Hosts, Local, Scheduler, parse
from httpmark.harness.model.errors import HarnessError


def test_each_form_is_read() -> None:
    assert parse("tcp://scheduler:8786") == Scheduler("tcp://scheduler:8786")
    assert parse("tls://10.0.0.1:8786/") == Scheduler("tls://10.0.0.1:8786")
    assert parse("tcp://[fd00::1]:8786") == Scheduler("tcp://[fd00::1]:8786")
    assert parse("ssh:one") == Hosts(("one",))
    assert parse("ssh:one,two.example,10.0.0.3") == Hosts(("one", "two.example", "10.0.0.3"))
    assert parse("local:2") == Local(2)


@pytest.mark.parametrize(
    "word",
    [
        "", "scheduler", "scheduler:8786", "tcp://scheduler", "tcp://scheduler:0",
        "tcp://scheduler:65536", "tcp://a b:1", "http://scheduler:8786", "ssh:", "ssh:one,,two",
        "ssh:-oProxyCommand=x", "ssh:me@one", "local:", "local:0", "local:-1", "local:two",
        "local:65",
    ],
)  # fmt: skip
def test_anything_else_is_refused_in_one_line_that_shows_the_forms(word: str) -> None:
    with pytest.raises(HarnessError) as told:
        parse(word)
    assert told.value.exit_code == 2
    assert "\n" not in str(told.value)
    assert "ssh:HOST1,HOST2" in str(told.value)
