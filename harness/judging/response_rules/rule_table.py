"""What each of the 36 rules asks, where that stands, and how strongly it binds."""

from __future__ import annotations

import msgspec

from httpmark.harness.model.cases import Level


class Rule(msgspec.Struct, frozen=True):
    """One rule: what it asks, where that stands, and how strongly it binds."""

    id: str
    title: str
    clause: str
    level: Level


_MUST, _SHOULD, _SEC = Level.MUST, Level.SHOULD, Level.SEC
RULES: dict[str, Rule] = {
    rule.id: rule
    for rule in (
        Rule("RESP-01", "a status line: HTTP/1. DIGIT SP 3DIGIT SP reason", "RFC 9112 4", _MUST),
        Rule("RESP-02", "version HTTP/1.1 to any 1.x request", "RFC 9110 6.2", _SHOULD),
        Rule("RESP-03", "a status from 100 to 599", "RFC 9110 15", _MUST),
        Rule("RESP-04", "a reason of HTAB, SP, VCHAR and obs-text", "RFC 9112 4", _MUST),
        Rule("RESP-05", "every line ends in CRLF, no bare CR or LF", "RFC 9112 2.2", _MUST),
        Rule("RESP-06", "field names are tokens, nothing before the colon, no folding",
             "RFC 9112 5", _MUST),
        Rule("RESP-07", "field values without control characters", "RFC 9110 5.5", _MUST),
        Rule("RESP-08", "singleton fields once only", "RFC 9110 5.3", _MUST),
        Rule("RESP-09", "Content-Length is a number and equals the bytes sent", "RFC 9110 8.6",
             _MUST),
        Rule("RESP-10", "not both Content-Length and Transfer-Encoding", "RFC 9112 6.2", _MUST),
        Rule("RESP-11", "no Transfer-Encoding on 1xx, 204 and 2xx to CONNECT", "RFC 9112 6.1",
             _MUST),
        Rule("RESP-12", "no Content-Length on 1xx, 204 and 2xx to CONNECT", "RFC 9110 8.6", _MUST),
        Rule("RESP-13", "Transfer-Encoding only to a request of HTTP/1.1 or a later minor",
             "RFC 9112 6.1", _MUST),
        Rule("RESP-14", "chunked is last in Transfer-Encoding, once, or the connection closes",
             "RFC 9112 6.1", _MUST),
        Rule("RESP-15", "a chunked body is well-formed to its last CRLF", "RFC 9112 7.1", _MUST),
        Rule("RESP-16", "no body after 1xx, 204, 304 or to HEAD", "RFC 9112 6.3", _MUST),
        Rule("RESP-17", "205 has no content", "RFC 9110 15.3.6", _MUST),
        Rule("RESP-18", "no bytes after the last expected answer", "RFC 9112 9.2", _MUST),
        Rule("RESP-19", "one final answer to each valid request, in order", "RFC 9112 9.2", _MUST),
        Rule("RESP-20", "Date on every 2xx, 3xx and 4xx", "RFC 9110 6.6.1", _MUST),
        Rule("RESP-21", "Date and Last-Modified as IMF-fixdate, the weekday right",
             "RFC 9110 5.6.7", _MUST),
        Rule("RESP-22", "405 has Allow, and Allow is a list of tokens", "RFC 9110 15.5.6", _MUST),
        Rule("RESP-23", "401 has WWW-Authenticate", "RFC 9110 15.5.2", _MUST),
        Rule("RESP-24", "426 and 101 have Upgrade, and Upgrade stands in Connection",
             "RFC 9110 7.8", _MUST),
        Rule("RESP-25", "206 has Content-Range or is multipart/byteranges, not both",
             "RFC 9110 15.3.7", _MUST),
        Rule("RESP-26", "304 repeats the fields of the 200", "RFC 9110 15.4.5", _MUST),
        Rule("RESP-27", "content that the server makes itself has a Content-Type", "RFC 9110 8.3",
             _SHOULD),
        Rule("RESP-28", "delimited by a length or by chunks", "RFC 9112 6.3", _SHOULD),
        Rule("RESP-29", "a close soon after an answer was announced", "RFC 9112 9.6", _SHOULD),
        Rule("RESP-30", "a promise to stay open is kept", "RFC 9112 9.3", _SHOULD),
        Rule("RESP-31", "Location, ETag, Last-Modified, Server, Vary match their grammar",
             "RFC 9110 10.2", _MUST),
        Rule("RESP-32", "error pages do not reflect the request unescaped", "RFC 9110 17", _SEC),
        Rule("RESP-33", "an answer that says close is followed by the close", "RFC 9112 9.6",
             _MUST),
        Rule("RESP-34", "Date is now", "RFC 9110 6.6.1", _SHOULD),
        Rule("RESP-35", "Last-Modified is not later than Date", "RFC 9110 8.8.2.1", _MUST),
        Rule("RESP-36", "no 1xx to a request of HTTP/1.0", "RFC 9110 15.2", _MUST),
    )
}  # fmt: skip
"""The rules by their number, in order."""
