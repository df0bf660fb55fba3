"""Expectations and what came, in plain English: for people who have not read scenarios/README.md.

``expectation`` reads the language of expectations, and ``matching`` judges it; here each of its
words has a phrase. Other texts, such as the sentence of a program, are left as they are.
"""

from __future__ import annotations

import re

from httpmark.harness.catalogue import expectation_words, vocabulary
from httpmark.harness.catalogue.expectation import ENDS

_REFUSED = "refused (a 4xx, 501, 505, or only a close)"

_WORDS = {
    "ACC": "the request accepted (a 2xx)",
    "PARSED": "an answer that shows that the server understood the request",
    "R400": "a 400",
    "R400C": "a 400 and the connection closed",
    "REJ": f"the request {_REFUSED}",
    "REJ301": f"the request {_REFUSED}, or a redirect to the correctly encoded target",
    "EITHER": f"the request accepted (a 2xx) or {_REFUSED}, and the same each time",
    "WAIT": "no answer before the message is complete",
    "CLOSE": "the connection closed without an answer",
    "ONE": "exactly one answer, of any status",
    "NO101": "an answer that is not 101, or a close without an answer",
}
_ENDS = {
    "close": "and the connection closed",
    "fin": "and the connection closed by FIN",
    "open": "and the next request answered on the same connection",
    "sync": "and the connection closed or the next request answered on it",
    "loose": "",
    "fewer": "or fewer, if the last one announces a close and the close comes",
    "quiet": "and what follows left unanswered",
    "spoiled": "and the bytes left over answered with a 400, a 501 or a close",
}
_BARE = {
    "empty": "understood without content",
    "empty?": "understood without content",
    "nobody": "without content in the answer",
    "keeps": "without a close announced in the answer",
    "says close": "with a close announced in the answer",
    "with 100": "after a 100",
    "with one 100": "after exactly one 100",
    "no 100": "without a 100 before it",
    "any target": "",
    "any method": "",
    "prompt": "none of them delayed",
    "before fin": "before the client half-closed",
}
_STATUSES = re.compile(r"[1-5](?:[0-9]{2}|xx)(?:,[1-5](?:[0-9]{2}|xx))*")
_LIMIT = re.compile(r"(no )?beyond \{limit\.([a-z_]+)\} (.*)")
_SHOWN = re.compile(r"(no )?(content|decoded|method|target|authority|version)\?? (.*)", re.DOTALL)
_FIELD = re.compile(
    r"(no field|no trailer|field\??|trailer|has|lacks) (\S+)(?: ([=~]) ?(.*))?", re.DOTALL
)
_BODY = re.compile(r"body (~|lacks) (.*)", re.DOTALL)
_STATUS_DEMAND = "status "
_NO_STATUS_DEMAND = "no status "
_NOT_BEFORE = re.compile(r"not before (\d+)")
_UNDECLARED = re.compile(r"undeclared \{timeout\.([a-z_]+)_s\}")
_OWN = re.compile(r"(talk|views)\.([a-z0-9_]+)")
_UNDERSTOOD = "understood "
_SHOWN_CHARACTERS = 40
_STATUSES_SHOWN = 6  # or ranges of them


def wanted(expected: str) -> str:
    """``Verdict.expected`` as one plain sentence, without a full stop."""
    text, hardened, _ = expected.partition(" (hardened)")
    passes, _, allows = text.partition("; allowed: ")
    try:
        said = " or ".join(map(_alternative, passes.split(" or ")))
        if allows:
            tolerated = (one.removesuffix(" (noted)") for one in allows.split(" or "))
            said += f"; tolerated: {' or '.join(map(_alternative, tolerated))}"
    except ValueError:
        return expected
    return f"{said} (ruleset hardened)" if hardened else said


_ENDED = {
    "closed": "and the connection closed",
    "reset": "and the connection reset",
    "left open": "and the connection left open",
}
_JUDGED = re.compile(r" \([0-9]{3} is not [^()]*\)")


def came(actual: str) -> str:
    """``Verdict.actual`` in plain words, without repeating what was expected."""
    text = _JUDGED.sub("", actual)
    for word, said in _ENDED.items():
        text = re.sub(rf"; {word}(?=$|,| \()", f", {said}", text)
    return text


_NEXT = "; the next request "
_ANSWERS_TOO_MANY = re.compile(r" \(\d+ answers instead of \d+\)$")


def came_apart(actual: str) -> tuple[str, str]:
    """What came in answer to a case, and what came in answer to the request after it.

    The second is empty if no request was sent after the case.
    """
    own, found, after = _JUDGED.sub("", actual).partition(_NEXT)
    if not found:
        return came(actual), ""
    if number := _ANSWERS_TOO_MANY.search(after):
        own, after = own + number[0], after[: number.start()]
    return came(own), f"{_NEXT.removeprefix('; ')}{after}"


def _alternative(text: str) -> str:
    """One alternative.

    :raises ValueError: a word is not in the language.
    """
    parts = [_answer(part) for part in text.split(" > ")]
    return f"first {', then '.join(parts)}" if len(parts) > 1 else parts[0]


def _answer(text: str) -> str:
    word, *demands = (piece.strip() for piece in text.split("; "))
    ends = [_ENDS[demand] for demand in demands if demand in ENDS]
    said = [_demand(demand) for demand in demands if demand not in ENDS]
    others = [one for one in said if one and not one.startswith(_UNDERSTOOD)]
    shown = [one.removeprefix(_UNDERSTOOD) for one in said if one.startswith(_UNDERSTOOD)]
    if shown:
        others.insert(0, f"{_UNDERSTOOD}{' and '.join(shown)}")
    return ", ".join((_word(word), *others)) + "".join(
        f"{',' if others else ''} {end}" for end in ends if end
    )


def _word(word: str) -> str:
    word, _, times = word.partition("*")
    if times and word == "ACC":
        return f"{times} requests accepted (a 2xx each)"
    if times:
        return f"{times} times {_word(word)}"
    if word in _WORDS:
        return _WORDS[word]
    if _STATUSES.fullmatch(word):
        return f"a {_statuses(word)}"
    if (own := _OWN.fullmatch(word)) is None:
        raise ValueError(f"no word {word!r}")
    if own[1] == "views":
        return f"what its program looks for: {own[2].replace('_', ' ')}"
    return vocabulary.SINGLE_CASE_RULES[own[2]]


def _statuses(words: str) -> str:
    """Statuses for people: neighbours as a range, ``or`` before the last."""
    ranges: list[list[str]] = []
    for word in words.split(","):
        last = ranges[-1][-1] if ranges else ""
        if last.isdigit() and word.isdigit() and int(word) == int(last) + 1:
            ranges[-1].append(word)
        else:
            ranges.append([word])
    told = [
        piece for run in ranges for piece in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else run)
    ]
    if len(told) > _STATUSES_SHOWN:
        told[_STATUSES_SHOWN - 1 : -1] = ["..."]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} or {told[-1]}"


def _demand(demand: str) -> str:
    """What one answer must fulfil.

    :raises ValueError: it is not in the language.
    """
    if demand in _BARE:
        return _BARE[demand]
    if found := _LIMIT.fullmatch(demand):
        unit = "bytes" if "_bytes" in found[2] else "fields"
        limit = found[2].replace("_bytes", "").replace("_", " ")
        exceed = "do not exceed" if found[1] else "exceed"
        number = found[3] if found[3].isdigit() else "that many"
        return f"if {number} {unit} {exceed} the server's limit for the {limit}"
    if demand.startswith(_NO_STATUS_DEMAND):
        return f"with another status than {_statuses(demand.removeprefix(_NO_STATUS_DEMAND))}"
    if found := _NOT_BEFORE.fullmatch(demand):
        return f"not sooner than {found[1]} ms after the request"
    if found := _UNDECLARED.fullmatch(demand):
        return f"if the server declares no timeout for the {found[1]}"
    if found := _SHOWN.fullmatch(demand):
        how = "without" if found[1] else "with"
        what = "decoded content" if found[2] == "decoded" else found[2]
        return f"{_UNDERSTOOD}{how} the {what} {_quoted(found[3])}"
    if demand.startswith(_STATUS_DEMAND):
        return f"with the status {_statuses(demand.removeprefix(_STATUS_DEMAND))}"
    if found := _BODY.fullmatch(demand):
        how = "with" if found[1] == "~" else "without"
        return f"{how} {_quoted(found[2])} in the answer's content"
    if (found := _FIELD.fullmatch(demand)) is None:
        raise ValueError(f"no demand {demand!r}")
    name = _text(found[2])
    value = f" fitting {_quoted(found[4] or '')}" if found[3] == "~" else ""
    value = f" = {_quoted(found[4] or '')}" if found[3] == "=" else value
    kind = found[1].removesuffix("?")
    if kind in ("has", "lacks"):
        return f"{'with' if kind == 'has' else 'without'} the field {name}{value} in the answer"
    if kind.startswith("no "):
        return f"{_UNDERSTOOD}without a {kind[3:]} {name}{value}"
    return f"{_UNDERSTOOD}with the {kind} {name}{value}"


_PLACEHOLDERS = (
    (re.compile(r"\{ramp ([^}]*)\}"), r"(\1 bytes)"),
    (re.compile(r"\{(?:[a-z]\w*)?[#-]?(\d+)\*([^{}])\}"), r"(\1 times \2)"),
    (re.compile(r"\{p\}"), "(the path)"),
    (re.compile(r"\{h\}"), "(the host)"),
    (re.compile(r"\{(?:secret|file)_text\}"), "(the text of a static file)"),
    (re.compile(r"\{octet\}"), "(the byte)"),
    (re.compile(r"\{([0-9a-f]{2})\.\.([0-9a-f]{2})\}"), r"(bytes \1 to \2)"),
    (re.compile(r"\{(?:[^{}\d]|\d+-)[^{}]*\}"), "(what was sent)"),
)


def _text(text: str) -> str:
    """Text of a scenario without its placeholders."""
    for placeholder, said in _PLACEHOLDERS:
        text = placeholder.sub(said, text)
    return text


def _quoted(text: str) -> str:
    shown = _text(text)
    cut = shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}..."
    return f'"{cut}"'


def with_words(expected: str) -> str:
    """An expectation in plain English, with the catalogue's words after it where they differ."""
    said = expectation_words.wanted(expected)
    return said if said == expected else f"{said} [{expected}]"
