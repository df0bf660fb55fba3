"""The rules of RFC 9110 and RFC 9112 for a proxy that forwards a request, as a table.

Only what a clause demands of every intermediary, or of a gateway, stands at MUST. What it demands
of forward proxies alone is a note here: a reverse proxy is a gateway (RFC 9110 3.7).
"""

from __future__ import annotations

from httpmark.harness.http.request_reader import Broken
from httpmark.harness.model.cases import Level
from httpmark.harness.model.forwarding import Rule

MUST, SHOULD, NOTE = Level.MUST, Level.SHOULD, Level.INFO

RULES = (
    Rule(
        "smuggled", "RFC 9112 6.3, 11.2", MUST,
        "No more requests reach the origin than were sent",
        "Bytes that are content for one reader and a request for the next pass every check of the "
        "first one.",
    ),
    Rule(
        "read-on", "RFC 9112 6.1, 6.3", MUST,
        "Nothing is forwarded of what follows a message with faulty framing",
        "The connection must be closed after it: nobody can say where the next request begins.",
    ),
    Rule(
        "both-framings", "RFC 9112 6.3", MUST,
        "Content-Length is removed where Transfer-Encoding is",
        "An intermediary that forwards such a message must first remove the Content-Length: else "
        "the origin may end the message elsewhere.",
    ),
    Rule(
        "invalid-length", "RFC 9110 8.6", MUST,
        "No Content-Length is forwarded that is no number, or stands twice",
        "A sender must not forward it: two readers may take it for two lengths.",
    ),
    Rule(
        "transfer-coding", "RFC 9112 6.1", MUST,
        "A forwarded Transfer-Encoding ends in chunked, once, and not in HTTP/1.0",
        "Where the last coding is another one, nobody can say where the request ends.",
    ),
    Rule(
        "chunks", "RFC 9112 7.1, RFC 9110 2.2", MUST,
        "Forwarded chunks are well-formed",
        "The coding is of one connection, so who sends it generates it, and must not generate what "
        "the grammar forbids. Readers differ on broken chunks, and on where the message ends.",
    ),
    Rule(
        "content", "RFC 9112 6.3, 7.1", MUST,
        "The content that arrives is the content that was sent",
        "Framing is made anew on each connection; the content must not change by it.",
    ),
    Rule(
        "bare-cr", "RFC 9112 2.2", MUST,
        "A bare CR is refused or replaced before forwarding",
        "A reader that takes CR for the end of a line sees a field that the proxy did not.",
    ),
    Rule(
        "nul", "RFC 9110 5.5", MUST,
        "A NUL in a field value is refused or replaced before forwarding",
        "A reader that ends strings at NUL sees another value.",
    ),
    Rule(
        "folded-line", "RFC 9112 5.2", MUST,
        "A folded field line is refused or made one line before forwarding",
        "A reader that knows no folding sees another field, or none.",
    ),
    Rule(
        "space-before-colon", "RFC 9112 5.1", MUST,
        "Whitespace before the colon is not forwarded",
        "Some readers take the name with its space for another field, and others do not.",
    ),
    Rule(
        "space-before-fields", "RFC 9112 2.2", MUST,
        "A first field line that begins with whitespace is not forwarded",
        "Some readers take it for a part of the request line.",
    ),
    Rule(
        "invalid-host", "RFC 9112 3.2", MUST,
        "A request whose Host is missing or invalid is not forwarded so",
        "A server must answer it with 400; the origin chooses the site by it.",
    ),
    Rule(
        "own-version", "RFC 9112 2.3", MUST,
        "The forwarded HTTP version is one that the proxy knows",
        "An intermediary must send its own version: the version of the client says nothing of it.",
    ),
    Rule(
        "connection-options", "RFC 9110 7.6.1", MUST,
        "Fields that Connection names are removed, and so are its options",
        "They are meant for this connection alone; the origin would take them for its own.",
    ),
    Rule(
        "trailers", "RFC 9110 6.5.1", MUST,
        "Trailer fields are not merged into the header section",
        "Who may send trailers could else set fields that were checked before.",
    ),
    Rule(
        "host-of-target", "RFC 9112 3.2.2", MUST,
        "A Host that contradicts the request target is ignored",
        "Where the target names the authority, the received Host must be ignored: else two sites "
        "are one request.",
    ),
    Rule(
        "max-forwards", "RFC 9110 7.6.2", MUST,
        "Max-Forwards of TRACE and OPTIONS is counted down, and ends at 0",
        "It is how a client finds a loop, or asks a certain hop.",
    ),
    Rule(
        "via", "RFC 9110 7.6.3", MUST,
        "A gateway adds Via to each request",
        "It is how loops are found, and which protocol the hops speak.",
    ),
    Rule(
        "hop-by-hop", "RFC 9110 7.6.1", SHOULD,
        "Keep-Alive, Proxy-Connection, TE and Upgrade are removed or replaced",
        "They are known to be meant for one connection, be they named by Connection or not.",
    ),
    Rule(
        "request-line", "RFC 9112 3", SHOULD,
        "An invalid request line is not forwarded",
        "A recipient should answer 400, as readers take it apart in different ways.",
    ),
    Rule(
        "field-line", "RFC 9112 5", NOTE,
        "A field line that breaks the grammar is forwarded",
        "Readers differ on it. The RFC forbids to generate it, and who forwards does not generate "
        "(RFC 9110 2.2).",
    ),
    Rule(
        "control-in-value", "RFC 9110 5.5", NOTE,
        "A control character in a field value is forwarded",
        "It is invalid, and a recipient may keep it.",
    ),
    Rule(
        "repaired", "RFC 9112", NOTE,
        "A message that must be refused reaches the origin, repaired",
        "What reaches the origin is well-formed; the client was not told that it was not.",
    ),
    Rule(
        "completed", "RFC 9112 8", NOTE,
        "A message that never ended, or was refused, reaches the origin as a whole one",
        "The origin cannot tell that content is missing.",
    ),
    Rule(
        "follows-version", "RFC 9112 2.3", NOTE,
        "The forwarded version is that of the client, 1.0 or 1.1",
        "An intermediary sends its own version, unless it steps down on purpose.",
    ),
    Rule(
        "order", "RFC 9110 5.3", NOTE,
        "Field lines of one name change their order",
        "The RFC forbids it to proxies: the order is part of the value.",
    ),
    Rule(
        "unknown-field", "RFC 9110 5.1", NOTE,
        "A field that nobody knows is not forwarded",
        "The RFC has proxies forward it, unless they are configured otherwise.",
    ),
    Rule(
        "target-changed", "RFC 9110 7.7", NOTE,
        "The path or the query is written in another way",
        "A gateway may do so; what checked the one spelling did not check the other.",
    ),
    Rule(
        "tolerated", "RFC 9112", NOTE,
        "The strict reader refuses what reaches the origin, and the reference takes it",
        "The two witnesses differ, so nothing is said of the proxy.",
    ),
)  # fmt: skip

BY_ID = {rule.id: rule for rule in RULES}

# What is wrong with a message that reached the origin, and the rule that says so. Of what is not
# here, no clause says that it must not be forwarded.
OF_BROKEN = {
    Broken.LINE: "request-line",
    Broken.METHOD: "request-line",
    Broken.TARGET: "request-line",
    Broken.AUTHORITY: "request-line",
    Broken.VERSION: "own-version",
    Broken.MAJOR: "own-version",
    Broken.FIRST_LINE: "space-before-fields",
    Broken.FOLD: "folded-line",
    Broken.BARE_LF: "field-line",
    Broken.BARE_CR: "bare-cr",
    Broken.COLON: "field-line",
    Broken.SPACE: "space-before-colon",
    Broken.NAME: "field-line",
    Broken.NUL: "nul",
    Broken.VALUE: "control-in-value",
    Broken.HOST: "invalid-host",
    Broken.BOTH: "both-framings",
    Broken.OLD: "transfer-coding",
    Broken.CODING: "transfer-coding",
    Broken.LENGTHS: "invalid-length",
    Broken.LENGTH: "invalid-length",
    Broken.SIZE: "chunks",
    Broken.CHUNK_CR: "chunks",
    Broken.DATA_END: "chunks",
    Broken.TRAILER: "chunks",
}
