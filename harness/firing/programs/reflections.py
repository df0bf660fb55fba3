"""What must not come back: files outside of the folder, redirects to other hosts, markup."""

from __future__ import annotations

import re

from httpmark.harness.firing.programs.stage import (
    Found,
    Stage,
    numbered,
    request_and_answer,
    with_steps,
)
from httpmark.harness.judging import observation
from httpmark.harness.judging.response_rules.exchange_view import view
from httpmark.harness.judging.response_rules.judge_answers import judge_answers
from httpmark.harness.model.cases import SECRET_TEXT, Case
from httpmark.harness.model.exchanges import Exchange, Outcome
from httpmark.harness.model.verdicts import Word

_OUTSIDE = (SECRET_TEXT.encode(), b"root:x:0:0:")
_AUTHORITY = re.compile(rb"(?i)(?:https?:)?//([^/?#]*)([^#]*)")


def follow_redirect(stage: Stage) -> Found:
    """No file from outside of the folder, and no redirect to one or to another host."""
    case = stage.case
    exchange = stage.fire(numbered([case]), 1)[0]
    if told := _outside(case, exchange):
        return Found(Word.FAIL, told)
    sight = observation.sight(case, exchange)
    if not sight.answers:
        return Found(Word.PASS, "closed without an answer")
    response = sight.answers[0].response
    places = response.values(b"location")
    told = f"{response.status}"
    if not 300 <= response.status < 400 or not places:
        return Found(Word.PASS, told)
    told += f" to {places[0].decode('latin-1')}"
    elsewhere = _AUTHORITY.match(places[0])
    if elsewhere is not None and elsewhere[1] != stage.facts.host.encode("latin-1"):
        return Found(Word.FAIL, f"{told}: another host")
    target = (elsewhere[2] if elsewhere is not None else places[0].partition(b"#")[0]) or b"/"
    if not target.startswith(b"/"):
        return Found(Word.PASS, told)  # a relative reference: a client stays below the folder
    lines = stage.facts.host_lines.encode("latin-1")
    request = b"GET %s HTTP/1.1\r\n%s\r\n" % (target, lines)
    followed = with_steps(case, request_and_answer(stage, request))
    after = stage.fire(numbered([followed], "followed"), 1)[0]
    if why := _outside(followed, after):
        return Found(Word.FAIL, f"{told}: {why}")
    return Found(Word.PASS, f"{told}, which gives no file from outside")


def _outside(case: Case, exchange: Exchange) -> str:
    """What is wrong with an answer; empty if the server stays in its folder."""
    if any(text in exchange.received for text in _OUTSIDE):
        return "gives a file from outside of the folder"
    sight = observation.sight(case, exchange)
    if exchange.outcome is Outcome.HUNG:
        return "silence"
    return f"no HTTP response: {sight.fault}" if sight.fault is not None else ""


_MARKUP = b'"><script>alert(1)</script>'


def markup_in_every_place(stage: Stage) -> Found:
    """A script in target, method, field name, Host or Expect is escaped or does not come back."""
    path = stage.facts.path.encode("latin-1")
    line = b" HTTP/1.1\r\n" + stage.facts.host_lines.encode("latin-1")
    messages = {
        "the target": b"GET /" + _MARKUP + line + b"\r\n",
        "the method": _MARKUP + b" " + path + line + b"\r\n",
        "a field name": b"GET " + path + line + _MARKUP + b": a\r\n\r\n",
        "Host": b"GET " + path + b" HTTP/1.1\r\nHost: " + _MARKUP + b"\r\n\r\n",
        "Expect": b"GET " + path + line + b"Expect: " + _MARKUP + b"\r\n\r\n",
    }
    made = [
        with_steps(stage.case, request_and_answer(stage, octets)) for octets in messages.values()
    ]
    made = numbered(made)
    silent = 0
    for place, case, exchange in zip(messages, made, stage.fire(made, 8), strict=True):
        found = judge_answers(view(case, exchange))
        if any(one.rule == "RESP-32" for one in found.found):
            return Found(Word.FAIL, f"{place} comes back unescaped in an HTML page")
        silent += exchange.outcome is Outcome.HUNG
    if silent == len(made):
        return Found(Word.FAIL, "silence")
    return Found(Word.PASS, "nothing comes back unescaped")
