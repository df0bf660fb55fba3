r"""Bytes and text of servers, made safe for where they are shown.

What a server sends is hostile: it may hold terminal escapes, markup, or characters that a file
format forbids. One function for each place:

- a terminal: :func:`escaped` and :func:`escaped_lines` (bytes), :func:`terminal_line` (text),
  :func:`terminal_text` (all that a command prints)
- the HTML page: :func:`page_bytes`, :func:`page_text`, :func:`page_json`
- Markdown: :func:`markdown`, :func:`markdown_code`, :func:`markdown_block`
- XML: :func:`xml`
- one line of a file that people edit: :func:`one_line`
- any file in UTF-8: :func:`valid_unicode`

Lines of shell are made in :mod:`shell_lines`.
"""

from __future__ import annotations

import json
import re
import unicodedata

from markupsafe import Markup, escape

# --- a terminal ---------------------------------------------------------------------------------

TERMINAL_BYTES_MAX = 2048

_NAMED = {0x0D: "\\r", 0x0A: "\\n", 0x09: "\\t"}


def escaped(octets: bytes, *, also: bytes = b"") -> str:
    r"""Bytes as printable ASCII, with the escapes of scenario files: ``\r \n \t \xNN``.

    The text stands for the same bytes again. A backslash is ``\x5c``.

    :param also: printable characters that are escaped, too.
    """
    return "".join(
        _NAMED.get(octet)
        or (
            chr(octet)
            if 0x20 <= octet < 0x7F and octet != 0x5C and octet not in also
            else f"\\x{octet:02x}"
        )
        for octet in octets
    )


def escaped_lines(message: bytes) -> str:
    """The same, with each line of the message on a line of its own."""
    shown = message[:TERMINAL_BYTES_MAX]
    text = escaped(shown).replace("\\r\\n", "\\r\\n\n").rstrip("\n")
    rest = len(message) - len(shown)
    return text + (f"\n... and {rest} bytes more" if rest else "")


_LOOKALIKES = str.maketrans({"×": "x", "≥": ">=", "–": "-", "—": "-", "’": "'", "µ": "u"})


def terminal_line(text: str) -> str:
    """Text for any terminal: one line of printable ASCII, the rest as escapes."""
    return "".join(
        character
        if character.isascii() and character.isprintable()
        else " "
        if character.isspace()
        else character.encode("unicode_escape", "backslashreplace").decode("ascii")
        for character in text.translate(_LOOKALIKES)
    )


# What a terminal obeys or hides: controls, marks of direction, and what has no width.
_OBEYED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]|\r(?!\n)"
)


def terminal_text(text: str) -> str:
    """Text without what a terminal would obey: it is shown as the escapes of JSON, so a JSON text
    stays the same value."""
    return _OBEYED.sub(lambda found: json.dumps(found[0])[1:-1], text)


# --- the HTML page ------------------------------------------------------------------------------

PAGE_BYTES_MAX = 200

_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def page_text(text: str) -> str:
    """Text with every control, bidirectional and surrogate character shown as an escape.

    It is not markup yet: the template still escapes it.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character
        if character in "\n\t" or unicodedata.category(character) not in _UNSEEN
        else f"\\u{ord(character):04x}"
        for character in text
    )


_RUN = re.compile(rb"(.)\1{511,}", re.DOTALL)  # nobody reads so many equal bytes
_RUN_SHOWN = 64


def page_bytes(octets: bytes, *, limit: int = PAGE_BYTES_MAX) -> Markup:
    """Bytes as one reads them: printable ASCII as itself, the rest as marked escapes.

    CR LF is a new line and nothing else is; a CR or an LF alone is marked. Of a long run of equal
    bytes the first are shown, and how many follow.
    """
    parts: list[str] = []
    begin, left = 0, limit
    for run in _RUN.finditer(octets):
        end = run.start() + _RUN_SHOWN
        if end - begin > left:
            break
        parts.append(_drawn(octets[begin:end]))
        parts.append(f"<b>… {run.end() - end:,} more of it …</b>")
        left -= end - begin
        begin = run.end()
    parts.append(_drawn(octets[begin : begin + left]))
    if len(octets) - begin > left:
        parts.append(f"\n… {len(octets) - begin - left:,} more bytes")
    return Markup("".join(parts))  # every piece above is escaped or our own


def _drawn(shown: bytes) -> str:
    """Every byte, as markup."""
    parts: list[str] = []
    marked = False

    def mark(on: bool) -> None:
        nonlocal marked
        if on != marked:
            parts.append("<b>" if on else "</b>")
            marked = on

    ends = 0  # of a line that is already written
    for at, octet in enumerate(shown):
        if at < ends:
            continue
        if shown[at : at + 2] == b"\r\n":
            mark(False)
            parts.append("\n")
            ends = at + 2
            continue
        if 0x20 <= octet < 0x7F and octet != 0x5C:
            mark(False)
            parts.append(str(escape(chr(octet))))
            continue
        mark(True)
        parts.append("\\\\" if octet == 0x5C else _NAMED.get(octet, f"\\x{octet:02x}"))
    mark(False)
    return "".join(parts)


def page_json(text: str) -> Markup:
    """JSON in ASCII for a script block of the page: nothing in it can end the block."""
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


# --- Markdown -----------------------------------------------------------------------------------

_MARKUP = re.compile(r"[\\`*_\[\]|~#$&<>@]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}


def markdown(text: str) -> str:
    """Text as one line of Markdown text: no markup, no table cell that ends early, no mention of
    anybody (``@name``) or of an issue (``#1``)."""
    return _MARKUP.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), one_line(text))


def markdown_code(text: str) -> str:
    """Text for between two backticks."""
    return "".join(character for character in text if character.isprintable()).replace("`", "'")


def markdown_block(text: str, *, characters_max: int) -> str:
    """A code block that its own content cannot end.

    :param characters_max: what is longer is cut.
    """
    plain = "\n".join(one_line(line) for line in text.split("\n"))[:characters_max]
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", plain)), default=0))
    return f"{fence}text\n{plain}\n{fence}"


# --- files --------------------------------------------------------------------------------------

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml(text: str) -> str:
    """Text without what XML 1.0 cannot hold, which is shown as an escape instead.

    It is not markup yet: the writer of the XML still escapes it.
    """
    return _NOT_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """Text on one line: a space for each character that cannot be printed."""
    return "".join(character if character.isprintable() else " " for character in text)


def valid_unicode(text: str) -> str:
    """Text with lone surrogates as escapes: UTF-8 cannot hold them, and readers of JSON refuse
    them."""
    return text.encode("utf-8", "backslashreplace").decode()
