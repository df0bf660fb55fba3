"""The fixed words of scenario files: suites, capabilities, programs, timeouts."""

from __future__ import annotations

import re

from httpmark.harness.model import servers
from httpmark.harness.model.cases import Facts

SUITES = ("seed", "rfc", "smuggling", "resilience", "found")
# What a server can declare, and what is only found by asking.
CAPABILITIES = frozenset({*servers.CAPABILITIES, "catch_all", "early"})

# Groups in which the ruleset "hardened" takes what is merely permitted for a failure.
HARDENED = frozenset({"CL", "TE", "CLTE", "CHK", "SMUG", "EOL", "FOLD", "HN", "HOST", "TRL"})

PROGRAMS: dict[str, str] = {
    "alive_after_each_family": "A plain request is answered after the bad requests of each family",
    "clean_neighbours": (
        "Ten poisoned connections in parallel with ten clean ones: these see nothing of those"
    ),
    "every_cut": (
        "Two requests in one go, cut at every octet: two answers in order, whatever the cut"
    ),
    "follow_redirect": (
        "Never what stands outside of the folder, nor a redirect to it or to elsewhere"
    ),
    "gives_back": (
        "After all bad requests memory is 64 MiB larger at most, and no descriptor is held"
    ),
    "limit_sized_requests": (
        "1000 requests of the largest size in turn: memory grows by 64 MiB at most"
    ),
    "markup_in_every_place": (
        "A script in target, method, field name, Host or Expect comes back escaped, or not at all"
    ),
    "never_reading_client": (
        "64 MiB of requests to a server whose answers nobody reads: it stops reading in time"
    ),
    "not_restarted": "The processes that took the bad requests are those that were there before",
    "resets": "Resets in request line, fields, content and answer, 25 of each",
    "resets_at_connect": "Two hundred connections that are reset as soon as they stand",
    "same_verdicts_at_64": "Bad requests draw 64 at a time what they draw alone",
    "slow_readers": "64 clients that read an octet a second: memory grows by 64 MiB at most",
    "thousand_bad_requests": "After 1000 bad requests on 1000 connections a good one is answered",
    "valid_load_among_bad_requests": (
        "Between all bad requests, valid ones are answered in time, each as itself"
    ),
}
"""The words of ``runner`` in scenario files, and what each program looks for, for people."""
SINGLE_CASE_RULES: dict[str, str] = {
    "allow_on_405": "Each 405 has Allow",
    "bare_interim": (
        "Interim answers have neither framing fields nor content (RFC 9110 8.6, RFC 9112 6.1)"
    ),
    "close_announced": "An answer that a close follows says close",
    "close_notify": "A closure alert before the close of the connection (RFC 9112 9.8)",
    "content_before_switch": (
        "After a 101 to a request with content: nothing comes until the client speaks again"
    ),
    "content_given_up": "After a 100 and silence: 408, or a close",
    "head_fields": "GET, then HEAD: the same field names, but for those that hang on the content",
    "head_length": (
        "HEAD, then GET: Content-Length of HEAD is the length of GET's content, or absent"
    ),
    "http2_upgrade": "A 101 to h2c that an HTTP/2 SETTINGS frame follows",
    "in_sync_after_refusal": "One refusal, then a close or the canary answered as itself",
    "linear_cost": (
        "The second of two like messages, ten times as long, takes at most 1 s or 20 times as long"
    ),
    "slow_first": "The quick answer, ready first, waits for the slow one",
    "upgrade_on_426": "A 426 has Upgrade",
    "unasked_close_announced": (
        "A server that closes after one answer, asked for nothing of the kind, says so in it"
    ),
    "three_date_formats": (
        "A plain GET, then the same date in three formats: what draws 304 in one does in all"
    ),
    "timeout_announced": "A 408 says close (RFC 9112 9.6)",
    "tls_record": "The port speaks TLS as well, and answered in it",
    "http2_settings": "The port speaks HTTP/2 with prior knowledge, and answered with its SETTINGS",
}
"""The words NAME of ``talk.NAME``, and what each rule asks for, for people."""
PUBLISHED_WORDS = frozenset({"seed", "accepted"})
"""What ``pass`` may be in the suite ``seed``; ``judging.published_rule`` holds the rules."""
DECLARED = re.compile(r"\{[^{}]*?\b(limit|timeout)\.([A-Za-z0-9_]*)|\b(timeout)\.([A-Za-z0-9_]+)")

# Whom load-time checks address cases to: a target that can do everything.
EVERYTHING = Facts(host="127.0.0.1:80", capabilities=tuple(sorted(CAPABILITIES)))
