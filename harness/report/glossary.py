"""What each word in a report means: for ``httpmark explain``, where it is no case.

Verdicts, levels, outcomes, readings, deliveries, the heads of the scoreboard's columns: a word that
a reader sees and could stop at. The catalogue explains its own (cases, families, requirements); a
test holds this list against what the scoreboard and the model can say.
"""

from __future__ import annotations

WORDS = {
    # Verdicts, as cases have them and as they are counted.
    "pass": "what came back is what the case asks for",
    "warn": (
        "what came back is not what was asked for first, but an outcome that the RFC permits "
        "too, or that its readers differ on; fails only in the ruleset hardened, where framing "
        "is at stake"
    ),
    "fail": "what came back fits nothing that the case asks for or allows",
    "unstable": (
        "the same case drew another verdict when it was asked again, alone or with more "
        "patience; it counts as neither pass nor fail, and the score is lowered by it"
    ),
    "void": (
        "nothing is proven: no connection came about, the machine lost packets meanwhile, or a "
        "quick look had no time for it; counted for nobody and against nobody"
    ),
    "not applicable": (
        "the server does not offer what the case needs, or what would prove the outcome cannot "
        "be seen on it; never counted as passed"
    ),
    "kept": (
        "the score: of the requirements of level MUST and the controls that were applicable, "
        "the share that passed or warned"
    ),
    "closed unanswered": (
        "of what failed, that in which the server only closed the connection without an answer;"
        " RFC 9112 9.5 lets a server close at any time, and who accepts that can see how much "
        "is only that"
    ),
    # What a gate says of a finding.
    "expected": "it fails as the baseline lists it, with a reason, and gates nothing",
    "undecided": (
        "the run cannot tell: void, or not the same twice; --inconclusive says what the gate "
        "makes of it"
    ),
    "unusable": (
        "nothing could be judged at all: the target was not there, died, or refuses the plain "
        "request"
    ),
    "finding": (
        "one thing a gate looks at: a case, a generated family, a check on every answer, or the"
        " deliveries of a message"
    ),
    "gate": (
        "what turns a run into an exit code: fails on any MUST or control that failed; SHOULD "
        "is reported"
    ),
    "score": "the finding that says whether a suite has a score, or the one --fail-under asks for",
    "controls": (
        "good requests that must be accepted before a score counts: a server that refuses "
        "everything would else be praised"
    ),
    "must": "the finding on all requirements of level MUST of a suite that has no cases of its own",
    "server": "the finding that says the server did not start, or died",
    "deliveries": (
        "how the octets of a message were cut: one write, per octet, at every boundary; the "
        "answer must not depend on it. Told for each message by its id and -delivery"
    ),
    "requirement": (
        "a row of the ledger: what a clause asks of a server, and the cases that show it; it is"
        " as good as its worst case"
    ),
    "contested": (
        "a row on which readers of the RFC differ: both readings are shown, and neither fails "
        "the gate alone"
    ),
    "minimised": (
        "the fewest octets found that break the same rule and draw the same: they stand beside "
        "a failing finding, and no verdict looks at them"
    ),
    # Levels.
    "CTRL": "a positive control: a valid message that must be accepted; gates like a MUST",
    "MUST": "the clause says MUST: a failure fails the gate",
    "SHOULD": "the clause says SHOULD, or is a matter of grammar alone; reported, gates nothing",
    "MAY": "the clause permits it: reported",
    "SEC": "good practice without a keyword in the RFC: reported",
    "INFO": (
        "said for information, never scored; it becomes a verdict where the server declares a "
        "limit or a timeout"
    ),
    # Rulesets and suites.
    "rfc": (
        "as a ruleset: MUST and controls gate, SHOULD is reported; as a suite: all designed "
        "cases and generated families of RFC 9110, 9112 and 3986 but those of smuggling and "
        "resilience"
    ),
    "hardened": (
        "the ruleset in which what is merely permitted fails where the framing of messages is "
        "at stake"
    ),
    "realistic": "the ruleset of about 60 cases that ask: is this an HTTP server at all",
    "seed": (
        "as a suite: the six published families, 123,942 malformed requests; as a ruleset: they"
        " gate, by their own rule"
    ),
    "smuggling": (
        "the suite of desynchronisation: Content-Length beside Transfer-Encoding, and what one "
        "origin shows of a request that is hidden in another"
    ),
    "resilience": "the suite that needs real time or bulk: timeouts, limits, slow and rude clients",
    "found": "the suite of what httpmark fuzz brought home, each find a case of its own",
    # Outcomes: facts of the wire, and how the connection ended.
    "answered": "at least one octet came back",
    "closed": (
        "the server closed (FIN): as an outcome without an octet before it, beside an answer "
        "how the connection ended"
    ),
    "reset": (
        "the server reset the connection (RST); for judging the same close as FIN, recorded apart"
    ),
    "hung": "nothing came back until the deadline: silence, which is never a pass",
    "silence": (
        "nothing came back until the deadline; never a pass but where a message is not complete"
    ),
    "refused": "no connection came about",
    "open": "the connection was still open when the case was over",
    # The strict reading of the published families.
    "detected": (
        "by the published reading: the answer does not begin with HTTP/1.1 200 OK; what a "
        "server that only closes, or is mute, gets too"
    ),
    "undetected": "by the published reading let through: the answer begins with HTTP/1.1 200 OK",
    "rejected": "by our strict reading: a well-formed answer of 4xx or 5xx",
    "accepted": "by our strict reading: a 2xx or 3xx to a request that is malformed",
    "mute": "by our strict reading: silence until the deadline",
    "malformed": "octets came back that are no strict HTTP response",
    "other": "malformed and void together",
    "published": (
        "whether the counts are those that were published for this server: exact, or differs"
    ),
    # Deliveries.
    "whole": "as the case is written, in the writes it names",
    "one": "all octets in one write: what the other cuts are compared with",
    "byte": "an octet at a time",
    "two": "in two pieces, at every place: two@17 is cut behind octet 17",
    "three": "in three pieces, both cuts near the same structural octet: three@17+19",
    "crlf": "between every CR and its LF",
    "buf": (
        "padded with fields so that a structural octet stands at the edge of a buffer: "
        "buf@4096-1:17"
    ),
    "join": "twice in one write, or behind a whole request with content: join@content",
    "tail": "the last octet late by 50 ms",
    "early": "a 2xx or 3xx began before the header section was whole (RFC 9110 5.3)",
    # Capabilities.
    "hello": "answers 200 with Hello World! to GET of any path",
    "body": "answers POST /body with the content it received",
    "mirror": "answers /mirror with a JSON object of what it understood of the request",
    "behave": (
        "has the places of known behaviour: /slow, /early, /204, /304, /redirect, /big, /404, "
        "/get-only"
    ),
    "echo": "answers GET /echo with the decoded query as JSON",
    "tls": "serves the same over TLS",
    "static": "serves the planted files under /static/",
    "websocket": "echoes messages at /websocket",
    "catch_all": "answers 2xx to any path and query, so that a refusal is one of the octets",
    # Load.
    "rank": "by cost; equal ranks where intervals overlap",
    "ns/req": "CPU time of the server, user and system, per answered request, in nanoseconds",
    "95 % interval": "where the median cost lies, by bootstrap over the rounds",
    "x null": "the cost over that of null, the cheapest server there can be",
    "null": (
        "the control server: it answers the same octets to anything, and is measured, never ranked"
    ),
    "req/s": (
        "answered requests a second; ranked only where the server was the limit, else a lower bound"
    ),
    "bound by": "who limited the sample: server, client, network, none, starved, broken or unknown",
    "client": "bound by the generator: the server may be faster",
    "network": "bound by the link, or by what was lost on it",
    "none": "bound by nobody: both ends were idle at times, too few requests were in flight",
    "starved": (
        "the machine gave the time to somebody else: a virtual machine's host, or other processes"
    ),
    "broken": (
        "answers were wrong, connections lacking, or the kernel dropped some that a churn opened: "
        "the sample counts for nothing"
    ),
    "unknown": "no rule for a limit holds, or the numbers do not add up",
    "p50": "the latency that half of the requests did not exceed; p90, p99 and p99.9 likewise",
    "max": "the longest latency of all",
    "service": "latency from the send, beside that from when the request was due",
    "lag": "how late the generator itself turned to what was due",
    "a second": "connections opened a second",
    "pairs": "how many blocks the two were compared in",
    "shows": "the least change that so many pairs would show, 8 times in 10",
    "times": "one server over another, pair by pair",
    # Memory.
    "VmPeak": "the highest virtual size: address space, not memory",
    "VmHWM": "the highest resident size",
    "VmHWM busy": "the highest resident size while suites or load were fired",
    "PSS": "resident memory, shared pages split among those who share them",
    "connections": "held open at once while memory was measured",
    "resident": "memory of the server's own per connection held",
    "kernel": "memory of the kernel per connection held, of one end",
    "total": "resident and kernel",
    "virtual": "address space per connection held",
    "held": "connections at the top of the ladder",
    "none held": "where the line meets no connection: what the server takes before there is any",
    "after": "what is left when all connections have gone",
}
"""Each word with its meaning, a sentence without its full stop."""

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
    "inconclusive": "undecided",
    "let through": "undetected",
    "delivery": "deliveries",
    "SEG-TAIL": "early",
    "p90": "p50",
    "p99": "p50",
    "p99.9": "p50",
    "of": "times",
    "busy": "VmHWM busy",
    "server-bound": "bound by",
    "TLS": "tls",
    "bare-close": "closed unanswered",
}
"""Other forms of the same words."""

FAMILIES = {
    "BASE": "positive controls",
    "RL": "request-line structure",
    "MTH": "the method token",
    "VER": "the HTTP version",
    "EOL": "line terminators, bare CR, bare LF",
    "LEAD": "octets before the request line",
    "HN": "field-line and field-name syntax",
    "FOLD": "folded and whitespace-led lines",
    "TGT": "request-target forms",
    "HOST": "Host",
    "CL": "Content-Length",
    "TE": "Transfer-Encoding",
    "CLTE": "Content-Length with Transfer-Encoding",
    "CHK": "chunked framing",
    "TRL": "the trailer section",
    "SMUG": "desynchronisation seen from one origin",
    "LIM": "limits",
    "EXP": "Expect: 100-continue",
    "CONN": "connection persistence",
    "PIPE": "pipelining",
    "SEM": "method semantics at the edge",
    "UPG": "upgrade and websocket basics",
    "TIME": "timeouts",
    "EOF": "early end of input",
    "PATHX": "normalisation and traversal on static files",
    "ROB": "liveness and isolation",
    "RESP": "checks on every answer of every case",
    "FOUND": "what the search brought home",
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
