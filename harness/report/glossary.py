"""What each word in a report means: for ``httpmark explain WORD`` and for ``docs/glossary.md``.

This module is the source. After a change, write the document anew::

    python -c "from httpmark.harness.report import glossary as g; print(g.markdown(), end='')" \\
        > docs/glossary.md

The catalogue explains its own entries (cases, families, requirements). Tests compare this list with
every word that the scoreboard and the model can say, and the document with this list.
"""

from __future__ import annotations

import msgspec


class Group(msgspec.Struct, frozen=True):
    """Words that belong together, in the order in which a newcomer needs them."""

    title: str
    words: dict[str, str]  # each with its meaning, in whole sentences


GROUPS = (
    Group(
        "From a case to a score",
        {
            "catalogue": (
                "All cases, requirements and load profiles together, read from the TOML files in "
                "scenarios/. Scores compare only under the same catalogue version."
            ),
            "scenario": "An entry of a file in scenarios/: what is sent and what may come back.",
            "suite": "Cases that run together: rfc, seed, smuggling, resilience or found; and "
            "forwarding, of reverse proxies.",
            "family": (
                "Cases under one rule. A generated family varies one value, for example each of "
                "the 256 bytes at one place; a designed family is one single case."
            ),
            "case": (
                "What is sent on one connection and what may come back. Its id never changes; "
                "httpmark explain ID shows its bytes and its rule."
            ),
            "step": "One action of a case on its connection: send, wait, close, reset, watch.",
            "delivery": (
                "How the bytes of a message are split into writes: one write, byte by byte, at "
                "every boundary. The answer must not depend on it. The finding for a message is "
                "named by its id and -delivery."
            ),
            "canary": (
                "A valid request that follows a case on the same connection. Its answer shows "
                "that the server agrees with us on where the message before it ended."
            ),
            "exchange": (
                "The record of one case sent once: every byte in both directions, the times, the "
                "outcome, and how the connection ended."
            ),
            "evidence": (
                "All exchanges of a run, in evidence.sqlite. Verdicts, scores and pages can be "
                "made from it again without a server."
            ),
            "outcome": (
                "A fact of the network, not a judgement: answered, closed, reset, hung or refused."
            ),
            "verdict": (
                "The judgement of a case: pass, warn, fail, unstable, void or not applicable."
            ),
            "requirement": (
                "What a clause of an RFC asks of a server, and the cases that show it. Its verdict "
                "is that of its worst case. Where requirements are counted, these are MUSTs and "
                "controls; the others are recommendations."
            ),
            "recommendation": (
                "A requirement that does not bind: SHOULD, MAY or good practice. It does not fail "
                "the gate."
            ),
            "request smuggling": (
                "Two servers in a row disagree where a message ends, so that a part of it is taken "
                "for a request. A failure can be used for it if the catalogue says that its case "
                "is about that, and the server did more than refuse the request."
            ),
            "level": "How strongly a clause binds: MUST, CTRL, SHOULD, SEC, MAY or INFO.",
            "clause": "The section of an RFC that a case rests on, for example RFC 9112 6.3.",
            "control": (
                "A valid request that must be accepted before a score counts; otherwise a server "
                "that refuses everything would score best. The control server is null."
            ),
            "score": (
                "Of a suite: the share of applicable MUSTs and controls that are met; of seed, the "
                "share of requests that were detected. As a finding: the suite has no score, or "
                "its score is below --fail-under."
            ),
            "met": (
                "How many requirements passed, or only warned: these are met as permitted. The "
                "share of those that apply is the score of a suite."
            ),
            "contested": (
                "Readers of the RFC disagree on this row. The report shows both readings, and "
                "neither fails the gate by itself."
            ),
            "minimised": (
                "The fewest bytes found that still break the same rule and get the same answer. "
                "They are shown beside a failing finding; no verdict depends on them."
            ),
            "server": (
                "A program under test: a folder in images/ with its server.toml, or a target that "
                "you name. As a finding: the server did not start, or it cannot be reached."
            ),
            "crash": (
                "The server died or hung of what it was sent. It is a finding that fails the gate, "
                "named by the case and -crash, or only crash where no single request is to blame."
            ),
            "target": "A server that is already running, named by its address.",
            "manifest": (
                "The file server.toml: how a server is built and started, and what it can do."
            ),
            "run": (
                "One call of httpmark run or check. Its folder holds result.json, evidence.sqlite, "
                "report.html, log.txt, and the digests of the first two in SHA256SUMS."
            ),
            "quick": (
                "A run with --quick: shorter load, each message in one write, and a fixed part of "
                "large generated families other than seed. Its figures show an order of "
                "magnitude."
            ),
            "full": "A run with --full: every case in every delivery, and longer load.",
        },
    ),
    Group(
        "Verdicts",
        {
            "pass": "What came back is what the case asks for.",
            "warn": (
                "What came back is not the first choice of the case, but the RFC permits it too, "
                "or readers of the RFC disagree on it. In the ruleset hardened it fails where the "
                "framing of messages is at stake."
            ),
            "fail": "What came back is nothing that the case asks for or allows.",
            "unstable": (
                "The same case got another verdict when it was sent again, alone or with longer "
                "deadlines. It counts as neither pass nor fail, but it lowers the score."
            ),
            "void": (
                "The case proves nothing: there was no connection, or this machine lost packets "
                "meanwhile. It counts for nobody and against nobody."
            ),
            "not applicable": (
                "The server does not offer what the case needs, or the outcome cannot be seen on "
                "this server. It never counts as passed."
            ),
            "closed unanswered": (
                "Failures in which the server only closed the connection, without an answer. RFC "
                "9112 9.5 lets a server close at any time; this count shows how many failures are "
                "only that."
            ),
        },
    ),
    Group(
        "Levels",
        {
            "CTRL": "A control: a valid message that must be accepted. It gates like a MUST.",
            "MUST": "The clause says MUST. A failure fails the gate.",
            "SHOULD": (
                "The clause says SHOULD, or only the grammar forbids it. Failures are reported; "
                "they do not fail the gate."
            ),
            "MAY": "The clause permits it. It is reported only.",
            "SEC": "Good practice for security, without a keyword in the RFC. It is reported only.",
            "INFO": (
                "For information, never scored. It becomes a verdict where the server declares "
                "the limit or timeout in question."
            ),
        },
    ),
    Group(
        "Suites and rulesets",
        {
            "ruleset": "How conformance is judged: rfc, hardened, seed or realistic (--ruleset).",
            "rfc": (
                "As a ruleset: MUSTs and controls gate, SHOULD is reported. As a suite: all cases "
                "of RFC 9110, 9112 and 3986 that are not in smuggling or resilience."
            ),
            "hardened": (
                "The ruleset in which an outcome that is only permitted fails where the framing of "
                "messages is at stake."
            ),
            "realistic": "The ruleset of about 60 cases that ask: is this an HTTP server at all?",
            "seed": (
                "As a suite: the six published families, 123,942 malformed requests. As a ruleset: "
                "they gate, by the published rule."
            ),
            "smuggling": (
                "The suite on request smuggling: Content-Length beside Transfer-Encoding, and "
                "requests hidden in other requests, as far as one server can show it."
            ),
            "resilience": (
                "The suite that needs real time or much data: timeouts, limits, slow clients."
            ),
            "found": "The suite of cases that httpmark fuzz found and saved.",
        },
    ),
    Group(
        "Outcomes, and how a connection ended",
        {
            "answered": "At least one byte came back.",
            "closed": (
                "As an outcome: the server closed the connection (FIN) without sending a byte. "
                "Beside an answer: the connection ended that way."
            ),
            "reset": (
                "The server reset the connection (RST). It is judged like a close and recorded "
                "apart."
            ),
            "hung": "Nothing came back until the deadline. Silence is never a pass.",
            "silence": (
                "Nothing came back until the deadline. It passes only where the message sent was "
                "not complete."
            ),
            "refused": "No connection could be opened.",
            "open": "The connection was still open when the case ended.",
        },
    ),
    Group(
        "The published families, read twice",
        {
            "detected": (
                "The published rule: the answer does not begin with HTTP/1.1 200 OK. A server that "
                "only closes, or never answers, gets this too."
            ),
            "undetected": "The published rule: the answer begins with HTTP/1.1 200 OK.",
            "rejected": "The strict rule: a well-formed answer with status 4xx or 5xx.",
            "accepted": "The strict rule: status 2xx or 3xx for a malformed request.",
            "mute": "The strict rule: silence until the deadline.",
            "malformed": "The bytes that came back are not a valid HTTP response.",
            "other": "Malformed and void together.",
            "published": (
                "Whether the counts equal those that were published for this server: exact, or "
                "differs."
            ),
        },
    ),
    Group(
        "Deliveries",
        {
            "whole": "As the case is written, in the writes that it names.",
            "one": "All bytes in one write. The other deliveries are compared with this one.",
            "byte": "One byte at a time.",
            "two": "In two pieces, split at every place: two@17 is split after byte 17.",
            "three": (
                "In three pieces, both splits near the same structural byte: three@17+19 is split "
                "after bytes 17 and 19."
            ),
            "crlf": "Split between every CR and its LF.",
            "buf": (
                "Padded with fields so that a structural byte lies at the edge of a buffer: "
                "buf@4096-1:17."
            ),
            "join": "Twice in one write, or after a whole request with content: join@content.",
            "tail": "The last byte is sent 50 ms late.",
            "early": (
                "A 2xx or 3xx answer began before the whole header section was sent (RFC 9110 5.3)."
            ),
        },
    ),
    Group(
        "The gate",
        {
            "gate": (
                "The rule that turns a run into an exit code. Any failed MUST or control fails it; "
                "SHOULD is only reported."
            ),
            "finding": (
                "One thing that the gate judges: a case, a generated family, a check on every "
                "answer, or the deliveries of a message."
            ),
            "baseline": (
                "A file that lists known failures, each with a reason. They do not fail the gate. "
                "check --update takes out what passes; only --allow-growth adds entries."
            ),
            "expected": (
                "It fails as the baseline lists it, with a reason. It does not fail the gate."
            ),
            "undecided": (
                "The run cannot tell: void, or not the same twice. --inconclusive says what the "
                "gate does then."
            ),
            "unusable": (
                "Nothing could be judged: the target was not there, or refused the plain request."
            ),
            "must": "The finding on all MUSTs of a suite, where its cases have no verdicts.",
        },
    ),
    Group(
        "Capabilities of a server",
        {
            "capability": "Something a server can do that some cases need; server.toml lists them.",
            "hello": "GET of any path gets 200 and Hello World!",
            "body": "POST /body gets the content that was sent.",
            "mirror": "/mirror answers with a JSON object of what the server understood.",
            "behave": (
                "The paths with known behaviour are there: /slow, /early, /204, /304, /redirect, "
                "/big, /404, /get-only."
            ),
            "behave.slow": "Of these the server has /slow, which answers after half a second.",
            "behave.early": "Of these the server has /early, which answers before the content.",
            "behave.204": "Of these the server has /204.",
            "behave.304": "Of these the server has /304, with an ETag.",
            "behave.redirect": "Of these the server has /redirect.",
            "behave.big": "Of these the server has /big, of 1 MiB.",
            "behave.404": "Of these the server has /404.",
            "behave.get-only": "Of these the server has /get-only.",
            "echo": "GET /echo gets the decoded query as JSON.",
            "tls": "The same is served over TLS.",
            "static": "The test files are served under /static/.",
            "websocket": "/websocket sends every message back.",
            "events": "/events sends an answer in pieces, without saying its length first.",
            "catch_all": "Any path and query gets a 2xx.",
            "own_answer": (
                "What the application answers to an unknown path and to a query is known, such as "
                "a router's 404. So a refusal of the bytes sent can be told from it."
            ),
        },
    ),
    Group(
        "Load",
        {
            "profile": "A kind of load: a file in scenarios/load. See httpmark list profiles.",
            "plan": "What a profile asks for: connections, depth, duration, requests, rate.",
            "depth": "How many requests each connection has in flight (pipelining).",
            "engine": "The program that produces the load: native, wrk, wrk2 or h2load.",
            "closed loop": (
                "Each connection sends its next request when an answer has come. It measures cost "
                "and throughput; its latency is mostly its own queue."
            ),
            "open loop": (
                "Requests are sent at a fixed rate, whether or not answers have come. It measures "
                "latency, from the time at which a request was due."
            ),
            "sample": (
                "One measurement: a freshly started server, a warm-up, a time window of load. "
                "Samples with errors are discarded."
            ),
            "block": (
                "One sample of each server, in random order, one after the other. What disturbs "
                "the machine for a while disturbs all servers of a block."
            ),
            "pairs": "In how many blocks the two servers were compared.",
            "cost": (
                "CPU time of the server, user and system, per answered request. Servers are ranked "
                "by it."
            ),
            "ns/req": "The cost in nanoseconds of CPU time per answered request.",
            "95 % interval": "The range that holds the true median cost 19 times in 20.",
            "rank": "The place by cost. Servers whose intervals overlap have equal ranks.",
            "null": (
                "The control server. It answers the same bytes to anything: the least that a "
                "server can cost. It is measured, never ranked."
            ),
            "x null": (
                "The cost divided by that of null in the same block, and the median of that over "
                "the blocks. It is not the quotient of the two costs that are printed."
            ),
            "req/s": (
                "Answered requests per second. They are ranked only where the server was the "
                "bottleneck; otherwise they are a lower bound."
            ),
            "bound by": (
                "The bottleneck of the sample: server, client, network, none, starved, broken or "
                "unknown."
            ),
            "bottleneck": (
                "What limited a sample. Requests per second say something about the server only "
                "where the server was the bottleneck."
            ),
            "Little's law": (
                "Requests in flight = requests per second x mean latency. Where measured values "
                "break it, they do not add up and the sample is not ranked."
            ),
            "client": "The load generator was the bottleneck. The server may be faster.",
            "network": "The link was the bottleneck, or packets that were lost on it.",
            "none": "Nothing was the bottleneck: too few requests were in flight.",
            "starved": (
                "Other programs, or the host of a virtual machine, took CPU time that the sample "
                "needed."
            ),
            "broken": (
                "Of a requirement: one of its cases fails. Of a sample: answers were wrong, "
                "connections were missing, or the kernel dropped new connections; it does not "
                "count."
            ),
            "unknown": "The bottleneck could not be found, or the numbers do not add up.",
            "p50": (
                "The latency that half of the requests did not exceed. p90, p99 and p99.9: the "
                "same for 90, 99 and 99.9 percent."
            ),
            "max": "The longest latency.",
            "service": "The latency from the moment of sending, at p99.",
            "lag": "How late the load generator itself was, at p99.",
            "a second": "Connections opened per second.",
            "times": "The figure of one server divided by that of another, in pairs of samples.",
            "shows": "The smallest change that so many pairs would show, 8 times in 10.",
        },
    ),
    Group(
        "Memory",
        {
            "VmPeak": "The highest virtual size. It is address space, not memory.",
            "VmHWM": "The highest resident size.",
            "VmHWM busy": "The highest resident size while suites or load were running.",
            "PSS": "Resident memory; shared pages are divided among the processes that share them.",
            "connections": "How many connections were held open while memory was measured.",
            "resident": "The server's own memory per open connection.",
            "kernel": "The kernel's memory per open connection, for one end.",
            "total": "Resident and kernel together.",
            "virtual": "Address space per open connection.",
            "held": "How many connections were open at the top of the ladder.",
            "ladder": "Memory measured with more and more idle connections open.",
            "none held": "What the server takes before any connection is open.",
            "after": "What the server still takes after all connections have closed.",
        },
    ),
)
"""All words, by what they are about."""

WORDS = {word: meaning for group in GROUPS for word, meaning in group.words.items()}

SAME = {
    "passed": "pass",
    "warned": "warn",
    "permitted": "warn",
    "warning": "warn",
    "failed": "fail",
    "not_applicable": "not applicable",
    "n/a": "not applicable",
    "inapplicable": "not applicable",
    "closed_unanswered": "closed unanswered",
    "bare-close": "closed unanswered",
    "inconclusive": "undecided",
    "let through": "undetected",
    "kept": "met",
    "deliveries": "delivery",
    "controls": "control",
    "capabilities": "capability",
    "SEG-TAIL": "early",
    "p90": "p50",
    "p99": "p50",
    "p99.9": "p50",
    "of": "times",
    "busy": "VmHWM busy",
    "server-bound": "bound by",
    "TLS": "tls",
    "window": "sample",
}
"""Other forms of the same words."""

FAMILIES = {
    "BASE": "controls: valid messages",
    "RL": "request-line structure",
    "MTH": "the method token",
    "VER": "the HTTP version",
    "EOL": "line terminators, bare CR, bare LF",
    "LEAD": "bytes before the request line",
    "HN": "field-line and field-name syntax",
    "FOLD": "folded lines, and lines that begin with a space",
    "TGT": "request-target forms",
    "HOST": "Host",
    "CL": "Content-Length",
    "TE": "Transfer-Encoding",
    "CLTE": "Content-Length with Transfer-Encoding",
    "CHK": "chunked framing",
    "TRL": "the trailer section",
    "SMUG": "request smuggling, as one server can show it",
    "LIM": "limits",
    "EXP": "Expect: 100-continue",
    "CONN": "persistent connections",
    "PIPE": "pipelining",
    "SEM": "what methods mean",
    "UPG": "upgrade, and the basics of WebSocket",
    "TIME": "timeouts",
    "EOF": "early end of input",
    "PATHX": "paths to static files: normalisation, and leaving the folder",
    "ROB": "a server that goes on, whatever one client does",
    "RESP": "checks on every answer of every case",
    "FOUND": "cases that httpmark fuzz found",
}
"""The families of designed cases, by the letters of their numbers."""


def meaning(word: str) -> str | None:
    """What a word of a report means, as ``word: meaning``; None where it is none of them.

    Capitals matter where two words differ by them alone.
    """
    for shown in (word, *(one for one in (*WORDS, *SAME) if one.lower() == word.lower())):
        known = SAME.get(shown, shown)
        if known in WORDS:
            return f"{shown}: {WORDS[known]}"
    return None


def markdown() -> str:
    """The whole glossary as Markdown: what ``docs/glossary.md`` holds."""
    lines = [
        "# Glossary",
        "",
        "Every word that a report, a message or a document of httpmark uses with a meaning of its",
        "own. `httpmark explain WORD` prints the same; it also explains cases, requirements and",
        "load profiles. This file is made from `harness/report/glossary.py`, which says how.",
    ]
    for group in GROUPS:
        lines += ["", f"## {group.title}", "", "| word | meaning |", "|---|---|"]
        for word, told in group.words.items():
            others = ", ".join(form for form, known in SAME.items() if known == word)
            also = f" Also: {others}." if others else ""
            lines.append(f"| {word} | {told}{also} |")
    lines += ["", "## Families of designed cases", "", "| letters | what they test |", "|---|---|"]
    lines += [f"| {letters} | {title} |" for letters, title in FAMILIES.items()]
    return "\n".join(lines) + "\n"
