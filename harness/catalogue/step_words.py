"""The steps of a case in words: what is sent, and what is waited for in between."""

from __future__ import annotations

from collections.abc import Iterable

from httpmark.harness.http.printable import escaped_lines
from httpmark.harness.model.cases import Case, Op, Step


def own_steps(case: Case) -> list[Step]:
    """The steps of a case without its canary, and without waits at the end."""
    steps = list(case.steps)
    if case.canary and not case.joined:
        while steps and steps[-1].data != case.canary:
            steps.pop()
        steps = steps[:-1]
    while steps and steps[-1].op in (Op.AWAIT, Op.WATCH) and len(steps) > 1:
        steps.pop()
    return steps


def played_in_words(steps: Iterable[Step]) -> list[str]:
    """Steps in words, a line or more each."""
    told: list[str] = []
    for step in steps:
        seconds = f"{step.wait_ms / 1000:g} s"
        match step.op:
            case Op.SEND if step.if_unanswered:
                told += ["sent where no answer has come:", escaped_lines(step.data)]
            case Op.SEND:
                told += ["sent:", escaped_lines(step.data)]
            case Op.AWAIT:
                told.append(f"(until an answer comes, at most {seconds})")
            case Op.FIN:
                told.append("(half-close)")
            case Op.RESET:
                told.append("(reset)")
            case Op.PAUSE:
                told.append(f"({seconds} later)")
            case _:
                told.append(f"(until a close, at most {seconds})")
    return told
