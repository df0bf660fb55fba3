"""All rules on all answers of one exchange."""

from __future__ import annotations

from httpmark.harness.http import request_reader
from httpmark.harness.judging.response_rules import close_rules, order_rules
from httpmark.harness.judging.response_rules.answer_reader import read_answers
from httpmark.harness.judging.response_rules.date_rules import judge_dates
from httpmark.harness.judging.response_rules.exchange_view import Clock, Declared, ExchangeView
from httpmark.harness.judging.response_rules.findings import Findings, Notes
from httpmark.harness.judging.response_rules.not_modified_rule import judge_not_modified
from httpmark.harness.judging.response_rules.reflection_rule import judge_reflection
from httpmark.harness.judging.response_rules.turns import turns


def judge_answers(
    seen: ExchangeView,
    declared: Declared = Declared(),  # noqa: B008
) -> Findings:
    """All rules on all answers of one exchange."""
    requests = request_reader.read(seen.sent)
    clock = Clock(seen)
    answers = read_answers(seen, clock, requests, declared)
    notes = Notes()
    if answers.html and b"<" in seen.sent:
        judge_reflection(notes, seen, answers)
    if answers.dated:
        judge_dates(notes, seen, clock, requests, answers)
    if not seen.head_only:
        if answers.closing is not None:
            close_rules.judge_said_close(notes, clock, answers, answers.closing)
        if answers.not_modified:
            judge_not_modified(notes, requests, answers)
        if requests.requests and requests.requests[0].valid:
            found = turns(seen, clock, requests, answers)
            if found is not None:
                order_rules.judge_surplus(notes, found)
                order_rules.judge_mirrored_order(notes, found)
                if order_rules.can_judge_rest(found):
                    order_rules.judge_silence(notes, found)
                    close_rules.judge_close(notes, found, declared)
    if not notes.bits:
        return answers.findings
    return Findings((*answers.findings.found, *notes.found), answers.findings.bits | notes.bits)


def judge_bytes(seen: ExchangeView, declared: Declared) -> Findings:
    """What the bytes of the answers alone decide: nothing of when they came, or of how many."""
    return read_answers(seen, Clock(seen), request_reader.read(seen.sent), declared).findings
