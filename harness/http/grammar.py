"""Sets of bytes and patterns of the RFCs, each under its section; the tests hold samples.

All of it is written from the text of the RFCs. The reference server has tables of its own, because
the judge and the judged share no code.
"""

from __future__ import annotations

import re

ANY = frozenset(range(256))

# RFC 5234 B.1 core rules
ALPHA = frozenset(range(0x41, 0x5B)) | frozenset(range(0x61, 0x7B))
DIGIT = frozenset(range(0x30, 0x3A))
ALPHANUMERIC = ALPHA | DIGIT
HEXDIG = frozenset(b"0123456789ABCDEFabcdef")
CTL = frozenset(range(0x20)) | {0x7F}
VCHAR = frozenset(range(0x21, 0x7F))
SP = frozenset(b" ")
HTAB = frozenset(b"\t")
CR = frozenset(b"\r")
LF = frozenset(b"\n")

# RFC 3986 2.2, 2.3, 3.3, 3.4
UNRESERVED = ALPHANUMERIC | frozenset(b"-._~")
SUB_DELIMS = frozenset(b"!$&'()*+,;=")
PCHAR = UNRESERVED | SUB_DELIMS | frozenset(b":@")  # without pct-encoded
TARGET = PCHAR | frozenset(b"/?")  # path and query of an origin-form target, "%" apart

# RFC 9110 5.6.2 token, 5.5 field-value
TCHAR = ALPHANUMERIC | frozenset(b"!#$%&'*+-.^_`|~")
OBS_TEXT = frozenset(range(0x80, 0x100))
FIELD_VALUE = VCHAR | SP | HTAB | OBS_TEXT

SETS: dict[str, frozenset[int]] = {
    "any": ANY,
    "alphanumeric": ALPHANUMERIC,
    "hexdig": HEXDIG,
    "ctl": CTL,
    "vchar": VCHAR,
    "printable": VCHAR | SP,
    "sp": SP,
    "htab": HTAB,
    "cr": CR,
    "lf": LF,
    "pchar": PCHAR,
    "target": TARGET,
    "tchar": TCHAR,
    "obs_text": OBS_TEXT,
    "slash": frozenset(b"/"),
    "question_mark": frozenset(b"?"),
    "backslash": frozenset(b"\\"),
    "colon": frozenset(b":"),
}

# One byte of each class stands for all of it: no set above cuts a class, except where a byte is
# outside of every set but ``vchar``.
BYTE_CLASSES: dict[str, frozenset[int]] = {
    "NUL": frozenset(b"\0"),
    "control": CTL - frozenset(b"\0\t\n\r\x7f"),
    "DEL": frozenset(b"\x7f"),
    "HTAB": HTAB,
    "LF": LF,
    "CR": CR,
    "space": SP,
    "digit": DIGIT,
    "a-f": HEXDIG - DIGIT,
    "g-z": ALPHA - HEXDIG,
    "sign": frozenset(b"+-"),
    "dot": frozenset(b"."),
    "mark": frozenset(b"!$&'*_~"),
    "tchar": frozenset(b"#%^`|"),
    "comma": frozenset(b","),
    "semicolon": frozenset(b";"),
    "colon": frozenset(b":"),
    "slash": frozenset(b"/"),
    "question": frozenset(b"?"),
    "separator": frozenset(b"()=@"),
    "quote": frozenset(b'"'),
    "backslash": frozenset(b"\\"),
    "bracket": frozenset(b"<>[]{}"),
    "obs-text": OBS_TEXT,
}

_SET_TERM = re.compile(
    r"\s*([+-]?)\s*(?:([0-9a-f]{2})(?:\.\.([0-9a-f]{2}))?(?![a-z_])|([a-z_]+))\s*"
)


def octet_set(expression: str) -> frozenset[int]:
    """The set of bytes that an expression names: terms joined by ``+`` and ``-``, from the left.

    A term is the name of a set, a byte as two hexadecimal digits, or a range (``80..ff``).

    :raises ValueError: a name is no set, or the expression has another form.
    """
    result: frozenset[int] = frozenset()
    at = 0
    while at < len(expression):
        term = _SET_TERM.match(expression, at)
        if term is None or (at > 0 and not term[1]):
            raise ValueError(f"{expression!r}: write names of sets, joined by + and -")
        if term[2]:
            octets = frozenset(range(int(term[2], 16), int(term[3] or term[2], 16) + 1))
        elif term[4] in SETS:
            octets = SETS[term[4]]
        else:
            raise ValueError(f"{term[4]!r} is no set of bytes; known are {', '.join(sorted(SETS))}")
        result = result - octets if term[1] == "-" else result | octets
        at = term.end()
    return result


def _octet_class(octets: frozenset[int]) -> bytes:
    return b"[" + b"".join(b"\\x%02x" % octet for octet in sorted(octets)) + b"]"


# RFC 9112 4: status-line = HTTP-version SP status-code SP [ reason-phrase ]
STATUS_LINE = re.compile(
    rb"HTTP/1\.([0-9]) ([0-9]{3}) (" + _octet_class(FIELD_VALUE) + rb"*)", re.DOTALL
)
# RFC 9112 5: field-line = field-name ":" OWS field-value OWS. Possessive, as blanks may be OWS or
# inside the value: a server that sends thousands of them must not keep the reader busy.
FIELD_LINE = re.compile(
    rb"(" + _octet_class(TCHAR) + rb"++):[ \t]*+((?:[ \t]*+"
    + _octet_class(FIELD_VALUE - SP - HTAB) + rb"++)*+)[ \t]*+",
    re.DOTALL,
)  # fmt: skip
# RFC 9112 7.1: chunk-size [ chunk-ext ]; extensions as name[=value], value token or quoted-string
_TOKEN = _octet_class(TCHAR) + rb"+"
_QUOTED = (
    rb'"(?:' + _octet_class(FIELD_VALUE - frozenset(b'"\\')) + rb"|\\"
    + _octet_class(FIELD_VALUE) + rb')*"'
)  # fmt: skip
CHUNK_LINE = re.compile(
    rb"([0-9A-Fa-f]+)(?:[ \t]*;[ \t]*" + _TOKEN
    + rb"(?:[ \t]*=[ \t]*(?:" + _TOKEN + rb"|" + _QUOTED + rb"))?)*",
    re.DOTALL,
)  # fmt: skip
# RFC 9110 8.6
CONTENT_LENGTH = re.compile(rb"[0-9]+")


# --- requests, as a client may send them; for what the judge knows of the bytes it sent ----------

_PCT = rb"%[0-9A-Fa-f]{2}"
_REG_NAME = rb"(?:" + _octet_class(UNRESERVED | SUB_DELIMS) + rb"|" + _PCT + rb")+"
_IP_LITERAL = rb"\[(?:[0-9A-Fa-f]*:[0-9A-Fa-f:.]+|[vV][0-9A-Fa-f]+\.[!$&-.0-;=A-Z_a-z~]+)\]"
# RFC 9110 7.2 with RFC 3986 3.2.2; the empty value is left out
HOST = re.compile(rb"(?:" + _IP_LITERAL + rb"|" + _REG_NAME + rb")(?::[0-9]*)?")
# Possessive: what follows cannot begin alike, so the matches are the same. A repeat that can be
# undone takes 120 bytes of memory for each byte, and targets can have megabytes.
_PATH_QUERY = (
    rb"(?:" + _octet_class(PCHAR | frozenset(b"/")) + rb"++|" + _PCT + rb")*+"
    rb"(?:\?(?:" + _octet_class(TARGET) + rb"++|" + _PCT + rb")*+)?"
)  # fmt: skip
# RFC 9112 3.2.1 to 3.2.4
ORIGIN_FORM = re.compile(rb"/" + _PATH_QUERY)
ABSOLUTE_FORM = re.compile(
    rb"[A-Za-z][A-Za-z0-9+.-]*://" + HOST.pattern + rb"(?:/" + _PATH_QUERY + rb"|"
    rb"(?:\?(?:" + _octet_class(TARGET) + rb"|" + _PCT + rb")*)?)"
)  # fmt: skip
AUTHORITY_FORM = re.compile(rb"(?:" + _IP_LITERAL + rb"|" + _REG_NAME + rb"):[0-9]+")
# RFC 9112 3: request-line, the target to be looked at on its own
REQUEST_LINE = re.compile(rb"(" + _TOKEN + rb") ([!-~\x80-\xff]+) HTTP/([0-9])\.([0-9])")
# RFC 9112 5: field lines with their CRLF, none to many
FIELD_LINES = re.compile(rb"(?:" + _TOKEN + rb":" + _octet_class(FIELD_VALUE) + rb"*\r\n)*")

# --- the rules that a server has to parse; `catalogue.grammar_samples` has a sample of each -------

# RFC 9112 2.3
HTTP_VERSION = re.compile(rb"HTTP/[0-9]\.[0-9]")
# RFC 3986 3.2.2: IPv4address, IPv6address, IP-literal
_DEC_OCTET = rb"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = re.compile(rb"(?:" + _DEC_OCTET + rb"\.){3}" + _DEC_OCTET)
_H16 = rb"[0-9A-Fa-f]{1,4}"
_LS32 = rb"(?:" + _H16 + rb":" + _H16 + rb"|" + IPV4.pattern + rb")"
IPV6 = re.compile(
    rb"(?:" + _H16 + rb":){6}" + _LS32
    + b"".join(
        rb"|" + (rb"(?:(?:" + _H16 + rb":){0,%d}" % (before - 1) + _H16 + rb")?" if before else b"")
        + rb"::" + (rb"(?:" + _H16 + rb":){%d}" % (5 - before) + _LS32 if before < 6
                    else _H16 if before == 6 else b"")
        for before in range(8)
    )
)  # fmt: skip
IP_LITERAL = re.compile(rb"\[(?:" + IPV6.pattern + rb"|[vV][0-9A-Fa-f]+\.[!$&-.0-;=A-Z_a-z~]+)\]")
REG_NAME = re.compile(_REG_NAME)
# RFC 9112 3.2: request-target, whatever the method
REQUEST_TARGET = re.compile(
    rb"(?:" + rb"|".join(
        (ORIGIN_FORM.pattern, ABSOLUTE_FORM.pattern, AUTHORITY_FORM.pattern, rb"\*")
    ) + rb")"
)  # fmt: skip
# RFC 9110 5.6.4
QUOTED_STRING = re.compile(_QUOTED, re.DOTALL)
# RFC 9110 10.1.4 with RFC 9112 7: a list of codings; elements may be empty (RFC 9110 5.6.1.2)
_PARAMETER = rb"[ \t]*;[ \t]*" + _TOKEN + rb"[ \t]*=[ \t]*(?:" + _TOKEN + rb"|" + _QUOTED + rb")"
_CODING = rb"(?:" + _TOKEN + rb"(?:" + _PARAMETER + rb")*)"


def _list_of(element: bytes) -> re.Pattern[bytes]:
    """``#element`` as a recipient reads it: elements may be empty, but not all of them."""
    return re.compile(
        rb"(?:[ \t]*,)*[ \t]*" + element + rb"(?:[ \t]*,(?:[ \t]*" + element + rb")?)*",
        re.DOTALL,
    )


TRANSFER_CODINGS = _list_of(_CODING)
# RFC 9110 7.6.1, 7.8, 10.1.1
TOKENS = _list_of(_TOKEN)
UPGRADE = _list_of(_TOKEN + rb"(?:/" + _TOKEN + rb")?")
EXPECT = _list_of(
    _TOKEN + rb"(?:=(?:" + _TOKEN + rb"|" + _QUOTED + rb")(?:" + _PARAMETER + rb")*)?"
)
# RFC 9110 14.1.1, for the unit bytes
_RANGE_SPEC = rb"(?:[0-9]+-[0-9]*|-[0-9]+)"
RANGE = re.compile(rb"(?i:bytes)=" + _list_of(_RANGE_SPEC).pattern)

# --- fields of answers ----------------------------------------------------------------------------

# RFC 9110 5.6.7
IMF_FIXDATE = re.compile(
    rb"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), ([0-9]{2}) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    rb" ([0-9]{4}) ([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60) GMT"
)
# RFC 9110 8.8.3
ENTITY_TAG = re.compile(rb'(?:W/)?"[!#-~\x80-\xff]*"')
# RFC 9110 5.6.7: the three formats that a recipient has to read
HTTP_DATE = re.compile(
    rb"(?:" + IMF_FIXDATE.pattern
    + rb"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, [0-9]{2}-(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug"
    rb"|Sep|Oct|Nov|Dec)-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT"
    rb"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    rb" (?:[0-9]{2}| [0-9]) [0-9]{2}:[0-9]{2}:[0-9]{2} [0-9]{4})"
)  # fmt: skip
# RFC 9110 13.1.1, 13.1.2
ENTITY_TAGS = re.compile(rb"\*|" + _list_of(ENTITY_TAG.pattern).pattern)
# RFC 9110 5.6.1.1: a list as a sender makes it; empty elements are for recipients only
TOKEN_LIST = re.compile(_TOKEN + rb"(?:[ \t]*,[ \t]*" + _TOKEN + rb")*")
# RFC 9110 10.2.4, 5.6.5
_COMMENT_TEXT = _octet_class(FIELD_VALUE - frozenset(b"()\\"))
_COMMENT = rb"\((?:" + _COMMENT_TEXT + rb"|\\" + _octet_class(FIELD_VALUE) + rb")*\)"
for _ in range(3):  # comments nest
    _COMMENT = (
        rb"\((?:"
        + _COMMENT_TEXT
        + rb"|\\"
        + _octet_class(FIELD_VALUE)
        + rb"|"
        + _COMMENT
        + rb")*\)"
    )
_PRODUCT = _TOKEN + rb"(?:/" + _TOKEN + rb")?"
SERVER = re.compile(_PRODUCT + rb"(?:[ \t]+(?:" + _PRODUCT + rb"|" + _COMMENT + rb"))*")
# RFC 9110 10.2.2 with RFC 3986 4.1: URI-reference
URI_REFERENCE = re.compile(
    rb"(?:[A-Za-z][A-Za-z0-9+.-]*:|(?![^/?#]*:))"
    rb"(?:(?!//)|//(?:(?:" + _octet_class(UNRESERVED | SUB_DELIMS | frozenset(b":")) + rb"|" + _PCT
    + rb")*@)?(?:" + _IP_LITERAL + rb"|(?:" + _REG_NAME + rb")?)(?::[0-9]*)?(?=[/?#]|$))"
    rb"(?:" + _octet_class(PCHAR | frozenset(b"/")) + rb"|" + _PCT + rb")*"
    rb"(?:\?(?:" + _octet_class(TARGET) + rb"|" + _PCT + rb")*)?"
    rb"(?:#(?:" + _octet_class(TARGET) + rb"|" + _PCT + rb")*)?"
)  # fmt: skip
