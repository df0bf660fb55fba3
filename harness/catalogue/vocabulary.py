"""The fixed words of scenario files: suites, capabilities, programs, rules of single cases."""

from __future__ import annotations

import re

from httpmark.harness.model import servers
from httpmark.harness.model.cases import Facts

SUITES = ("seed", "rfc", "smuggling", "resilience", "found")
FORWARDING = "forwarding"  # what ``run`` asks of reverse proxies; it has no families of its own
FOUND_BY_ASKING = ("catch_all", "own_answer", "early")
# What a server can declare, and what is found only by asking it.
CAPABILITIES = frozenset({*servers.CAPABILITIES, *servers.PARTS_OF_BEHAVE, *FOUND_BY_ASKING})

# Groups in which the ruleset "hardened" counts what is only permitted as a failure.
HARDENED = frozenset({"CL", "TE", "CLTE", "CHK", "SMUG", "EOL", "FOLD", "HN", "HOST", "TRL"})

PROGRAMS: dict[str, str] = {
    "alive_after_each_family": (
        "The server answers a plain request after the bad requests of each family"
    ),
    "clean_neighbours": (
        "Ten clean connections beside ten that send bad requests get only their own answers"
    ),
    "every_cut": "Two requests cut at every byte get two answers in order, wherever the cut is",
    "follow_redirect": (
        "No file from outside of the folder, and no redirect to one or to another host"
    ),
    "gives_back": (
        "After all bad requests, memory has grown by 64 MiB at most and no descriptor is still open"
    ),
    "late_reader": (
        "A client that reads nothing until the server waits for it, then gets all eight answers"
    ),
    "limit_sized_requests": (
        "Memory grows by 64 MiB at most over 1000 requests of the largest permitted size"
    ),
    "markup_in_every_place": (
        "A script in target, method, field name, Host or Expect is escaped or does not come back"
    ),
    "never_reading_client": (
        "The server stops reading in time when a client sends 64 MiB of requests and reads no "
        "answer; its memory grows by 32 MiB at most for one more such client"
    ),
    "not_restarted": "The same processes run before and after the bad requests",
    "resets": (
        "The server answers after resets in request line, fields, content and answer, 25 of each"
    ),
    "resets_at_connect": (
        "The server answers after two hundred connections that are reset as soon as they are open"
    ),
    "same_verdicts_at_64": "Bad requests get the same verdicts 64 at a time as alone",
    "slow_readers": (
        "Memory grows by 64 MiB at most with 64 clients that each read one byte a second"
    ),
    "thousand_bad_requests": (
        "The server answers a good request after 1000 bad requests on 1000 connections"
    ),
    "valid_load_among_bad_requests": (
        "Valid requests among the bad ones are answered in time, each with its own answer"
    ),
    "websocket_late_reader": (
        "4,000 messages come back in order to a client that reads nothing until the server waits"
    ),
}
"""The words of ``runner`` in scenario files, and what each program looks for, for people."""
SINGLE_CASE_RULES: dict[str, str] = {
    "allow_on_405": "Each 405 has an Allow field",
    "bare_interim": (
        "Interim answers have no content and no framing fields (RFC 9110 8.6, RFC 9112 6.1)"
    ),
    "close_announced": "The last answer before the server closes announces the close",
    "close_notify": "The server sends a closure alert before it closes (RFC 9112 9.8)",
    "content_before_switch": (
        "After a 101 to a request with content, the server sends nothing until the client does"
    ),
    "content_given_up": "After a 100 and no content, the server answers 408 or closes",
    "head_fields": (
        "GET and HEAD get the same field names, except fields that depend on the content"
    ),
    "head_length": (
        "The Content-Length in the answer to HEAD is the length of the content for GET, or absent"
    ),
    "http2_upgrade": "A 101 to h2c, then an HTTP/2 SETTINGS frame",
    "in_sync_after_refusal": (
        "One refusal, then a close or the right answer to the next request on the connection"
    ),
    "linear_cost": (
        "The second of two similar messages is ten times as long, and takes at "
        "most 1 s or 20 times "
        "as long"
    ),
    "upgrade_on_426": "A 426 has an Upgrade field",
    "unasked_close_announced": (
        "A server that closes after one answer, although not asked to, announces it in the answer"
    ),
    "three_date_formats": (
        "If a date in one of the three formats gets a 304, the same date in the others does, too"
    ),
    "timeout_announced": "A 408 announces the close (RFC 9112 9.6)",
    "tls_record": "A port that speaks TLS as well answers in TLS",
    "http2_settings": "A port that speaks HTTP/2 with prior knowledge answers with SETTINGS",
}
"""The words NAME of ``talk.NAME``, and what each rule asks for, for people."""
PUBLISHED_WORDS = frozenset({"seed", "accepted"})
"""What ``pass`` may be in the suite ``seed``; ``judging.published_rule`` holds the rules."""
DECLARED = re.compile(r"\{[^{}]*?\b(limit|timeout)\.([A-Za-z0-9_]*)|\b(timeout)\.([A-Za-z0-9_]+)")

# A target that can do everything: texts of scenario files are checked with it.
EVERYTHING = Facts(host="127.0.0.1:80", capabilities=tuple(sorted(CAPABILITIES)))
