"""The same server, checked twice on a busy machine, gets the same verdicts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from httpmark.harness.model.errors import HarnessError
from httpmark.harness.tests import stability
from httpmark.harness.tests.shared import check_verdicts
from httpmark.harness.tests.shared.check_verdicts import Checked
from httpmark.harness.tests.shared.pytest_rules import required

# What each needs besides the commands of this package.
SERVERS = {
    "reference": None, "nginx": "nginx", "python_h11": None, "go_net_http": "go",
    "rust_hyper": "cargo",
}  # fmt: skip
DIFFERENT_MAX = 1 / 1000  # of the verdicts


@pytest.mark.nightly
@pytest.mark.process
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_gets_the_same_verdicts_twice_on_a_busy_machine(name: str, tmp_path: Path) -> None:
    try:
        first, second = (
            check_verdicts.checked(name, tmp_path / number, "--quick")
            for number in ("first", "second")
        )
    except HarnessError as error:
        if SERVERS[name] in required():
            raise
        pytest.skip(f"{name} is not available: {error}")
    assert first.verdicts.keys() == second.verdicts.keys()
    assert len(first.verdicts) > 500
    different = check_verdicts.different(first.verdicts, second.verdicts)
    total = check_verdicts.total(first.verdicts)
    assert sum(different.values()) <= DIFFERENT_MAX * total, different
    assert first.code == second.code, different


def check(code: int = 1, **words: str) -> Checked:
    return Checked(code, 2.0, {name: Counter(said.split()) for name, said in words.items()})


def test_each_check_is_compared_with_what_most_said() -> None:
    many = " ".join(["pass"] * 4000)
    same = check(a="pass", b="fail", c=many)
    text, agree = stability.told("it", [same, same, same])
    assert agree
    assert "3 checks of 4,002 verdicts, 2 to 2 s; exit code 1 (3 times)" in text
    text, agree = stability.told("it", [same, check(a="fail", b="fail", c=many), same])
    assert agree  # one in four thousand
    assert "at most 1 in one check, 1 in all\n    a: 1" in text
    assert not stability.told("it", [same, check(0, a="pass", b="fail", c=many), same])[1]
    few = check(a="pass", b="fail"), check(a="fail", b="fail"), check(a="pass", b="fail")
    assert not stability.told("it", few)[1]


def test_a_check_is_kept_and_read_again(tmp_path: Path) -> None:
    one = check(a="pass fail pass")
    stability.keep(one, tmp_path / "one.json")
    assert stability.kept(tmp_path / "one.json") == one
