"""Written steps: what is read, and what is refused."""

from __future__ import annotations

import pytest

from httpmark.harness.catalogue import case_builder, step_notation
from httpmark.harness.catalogue.family_rules import Rule
from httpmark.harness.model.cases import Await, Facts, Op, Step

GET = r"GET {p} HTTP/1.1\r\nHost: {h}\r\n\r\n"


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        ("80", 80),
        ("1.5*timeout.idle_s", 3000),
        ("2*timeout.head_s", 40_000),
        ("past timeout.idle_s", 4000),
        ("past timeout.head_s", 24_000),
        ("past timeout.idle_s|head_s", 24_000),
    ],
)
def test_a_wait_is_a_number_or_rests_on_a_declared_timeout(written: str, ms: int) -> None:
    facts = Facts(host="h", timeouts={"idle_s": 2.0, "head_s": 20.0})
    assert step_notation.complaint(f"watch {written}") is None
    assert step_notation.milliseconds(written, facts) == ms
    if "timeout" in written:
        rule = Rule(steps=("send " + GET, f"watch {written}"))
        declared = "idle_s" if "idle" in written else "head_s"
        assert case_builder.inapplicable(rule, Facts(host="h")) == (
            f"the target declares no timeout {declared}: "
            f"declare timeouts.{declared} in a manifest (docs/manifest.md)"
        )


@pytest.mark.parametrize(("head_s", "ms"), [(None, 2000), (0.0, 2000), (5.0, 7000)])
def test_a_wait_past_a_timeout_may_have_another_length_without_one(
    head_s: float | None, ms: int
) -> None:
    written = "past timeout.head_s else 2000"
    assert step_notation.complaint(f"await {written}") is None
    assert step_notation.milliseconds(written, Facts(host="h", timeouts={"head_s": head_s})) == ms


@pytest.mark.parametrize("written", ["soon", "timeout.idle_s", "1.5timeout.idle_s", "-1", "past 5"])
def test_other_waits_are_refused(written: str) -> None:
    assert step_notation.complaint(f"watch {written}") is not None


def test_a_drip_goes_on_for_its_time_while_the_connection_is_open() -> None:
    written = "drip b every 0.1*timeout.head_s for past timeout.head_s"
    assert step_notation.complaint(written) is None
    rule = Rule(steps=("send " + GET, written))
    (case,) = case_builder.cases("c", rule, Facts(host="h", timeouts={"head_s": 5.0}))
    drops = case.steps[1:]
    assert [step.op for step in drops] == [Op.SEND, Op.WATCH] * 14  # 7 s, every 0.5 s
    assert all(step.if_open for step in drops)
    assert {step.data for step in drops[::2]} == {b"b"}
    assert sum(step.wait_ms for step in drops) == 7000
    assert step_notation.complaint("drip b every 5") is not None


@pytest.mark.parametrize(
    ("written", "step"),
    [
        ("send a b", Step(Op.SEND, b"a b")),
        ("open unanswered send open a", Step(Op.SEND, b"open a", if_open=True, if_unanswered=True)),
        ("await", Step(Op.AWAIT, wait_ms=2000, kind=Await.FINAL)),
        ("open await 300", Step(Op.AWAIT, wait_ms=300, kind=Await.FINAL, if_open=True)),
        ("await any", Step(Op.AWAIT, wait_ms=2000, kind=Await.ANY)),
        ("unanswered await any 70", Step(Op.AWAIT, b"", 70, Await.ANY, if_unanswered=True)),
        ("look 50", Step(Op.AWAIT, wait_ms=50, kind=Await.LOOK_FINAL)),
        ("look any 50", Step(Op.AWAIT, wait_ms=50, kind=Await.LOOK_ANY)),
        ("pause 20", Step(Op.PAUSE, wait_ms=20)),
        ("open watch 2*timeout.head_s", Step(Op.WATCH, wait_ms=4000, if_open=True)),
        ("fin", Step(Op.FIN)),
        ("open reset", Step(Op.RESET, if_open=True)),
    ],
)
def test_a_written_step_is_one_step(written: str, step: Step) -> None:
    assert step_notation.complaint(written) is None
    facts = Facts(host="h", timeouts={"head_s": 2.0})
    (case,) = case_builder.cases("c", Rule(steps=(written,)), facts)
    assert case.steps == (step,)


def test_the_second_request_decides_what_the_second_answer_may_be() -> None:
    rule = Rule(steps=("send x", "await", "await any", "await"), methods=("GET", "HEAD"))
    (case,) = case_builder.cases("c", rule, Facts(host="h"))
    assert [step.kind for step in case.steps[1:]] == [Await.FINAL, Await.ANY, Await.HEAD]


def test_steps_that_send_no_canary_have_none() -> None:
    for steps, canary, has_canary, joined in (
        (("send x",), "after", False, False),
        (("send x", "canary"), "none", True, False),
        (("send x{canary}",), "joined", True, True),
    ):
        (case,) = case_builder.cases("c", Rule(steps=steps, canary=canary), Facts(host="h"))
        assert (bool(case.canary), case.joined) == (has_canary, joined), steps
