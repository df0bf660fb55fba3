"""Changes of one token in a C++ source: what a mutation of the reference server is."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from httpmark.harness.tests.shared.cpp_functions import NO_CODE

# Operators with a space on both sides, so that the brackets of a template are none.
BINARY = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "&&": "||", "||": "&&",
    "+": "-", "-": "+", "|": "&", "&": "|", "<<": ">>", ">>": "<<",
    "+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=",
}  # fmt: skip
CLASSES = (
    "is_tchar", "is_pchar", "is_target_char", "is_unreserved", "is_sub_delim", "is_alpha",
    "is_digit", "is_hexdig", "is_ows", "is_qdtext", "is_quoted_pair_char", "is_forbidden_in_field",
)  # fmt: skip
CHARACTERS = {
    r"\r": r"\n", r"\n": r"\r", r"\t": " ", " ": r"\t", ",": ";", ";": ",", ":": "=", "=": ":",
    "/": "?", "?": "/", "%": "#", "#": "%", "@": ":", "[": "]", "]": "[", "*": "/", ".": ",",
    '"': "'", r"\'": '"', r"\\": "/", "-": "_", "_": "-", "+": "-",
}  # fmt: skip
TOKEN = re.compile(
    NO_CODE.pattern
    + r"""
    | (?P<word> [A-Za-z_]\w*(?:::\w+)* )
    | (?P<binary> (?<=[ ])(?:==|!=|<<|>>|<=|>=|&&|\|\||\+=|-=|\|=|&=|[<>+\-|&])(?=[ \n]) )
    | (?P<step> \+\+ | -- )
    | (?P<not> !(?=[\w(*]) )
    """,
    NO_CODE.flags,
)
STATEMENT = re.compile(
    r"(?:break|(?:\+\+|--)?\*?[A-Za-z_][\w.\[\]]*(?:->[\w.\[\]]+)*"
    r"(?:\(.*\)|\s[-+|&^]?=\s[^{}]*|\+\+|--|(?<=[\w\]])));"
)
CONDITION = re.compile(
    r"\b(?:if|while) \((?P<inside>[^()]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[^()]*)*)\)"
)
# What holds whatever a client sends.
NOT_CHANGED = re.compile(r"\b(?:CHECK|static_assert|alignas|using|return|delete)\b")


@dataclass(frozen=True)
class Change:
    """One replacement in one file."""

    file: str
    start: int
    before: str
    after: str
    kind: str

    def apply(self, source: str) -> str:
        end = self.start + len(self.before)
        assert source[self.start : end] == self.before, f"{self.file} is not what it was"
        return source[: self.start] + self.after + source[end:]

    def line(self, source: str) -> int:
        return source.count("\n", 0, self.start) + 1

    def lines(self, source: str) -> tuple[str, str]:
        """The line that it stands in, before and after, without what surrounds it."""
        begin = source.rfind("\n", 0, self.start) + 1
        end = source.find("\n", self.start + len(self.before))
        end = len(source) if end < 0 else end
        inside = self.start - begin
        text = source[begin:end]
        changed = text[:inside] + self.after + text[inside + len(self.before) :]
        return " ".join(text.split()), " ".join(changed.split())


def numbers_near(text: str) -> Iterator[str]:
    """One more and one less."""
    found = re.fullmatch(r"(0x[0-9A-Fa-f]+|[1-9][0-9]*|0)([uUlL]*)", text)
    if found is None:
        return
    is_hex = found[1].startswith("0x")
    value = int(found[1], 16 if is_hex else 10)
    for near in (value + 1, value - 1):
        if near >= 0:
            yield (f"0x{near:X}" if is_hex else str(near)) + found[2]


def other_text(text: str) -> str | None:
    """Another character, or the same string with its last letter or digit changed."""
    inside = text[1:-1]
    if text.startswith("'"):
        if inside in CHARACTERS:
            return f"'{CHARACTERS[inside]}'"
        if len(inside) != 1 or not inside.isalnum():
            return None
    places = [
        at for at, one in enumerate(inside)
        if one.isascii() and one.isalnum() and inside[at - 1 : at] != "\\"
    ]  # fmt: skip
    if not places:
        return None
    at = places[-1]
    new = {"z": "a", "Z": "A", "9": "0"}.get(inside[at], chr(ord(inside[at]) + 1))
    return text[0] + inside[:at] + new + inside[at + 1 :] + text[-1]


def names_swapped(source: str) -> dict[str, str]:
    """For each enumerator and flag that a source uses, another one of its kind in it."""
    words = sorted({found["word"] for found in TOKEN.finditer(source) if found["word"]})
    groups: dict[str, list[str]] = {"class": list(CLASSES)}
    for word in words:
        if found := re.fullmatch(r"(\w+)::k[A-Z]\w*", word):
            groups.setdefault(found[1], []).append(word)
    flags = set(
        re.findall(r"(?:has\(|flags \|= |set\(|clear\()((?:Connection::)?k[A-Z]\w*)", source)
    )
    groups["flag"] = sorted(flag for flag in flags if "::" not in flag)
    return {
        word: group[(at + 1) % len(group)]
        for group in groups.values()
        if len(group) > 1
        for at, word in enumerate(group)
    }


def token_changes(file: str, source: str) -> Iterator[Change]:
    swapped = names_swapped(source)
    for found in TOKEN.finditer(source):
        begin = source.rfind("\n", 0, found.start()) + 1
        line = source[begin : source.find("\n", found.start())]
        if re.search(r"\b(?:CHECK|static_assert|alignas)\b|\[\[", line):
            continue
        at, text = found.start(), found[0]
        if found["binary"]:
            yield Change(file, at, text, BINARY[text], "operator")
        elif found["step"]:
            yield Change(file, at, text, "--" if text == "++" else "++", "operator")
        elif found["not"]:
            yield Change(file, at, text, "", "negation")
        elif found["number"]:
            for near in numbers_near(text):
                yield Change(file, at, text, near, "number")
        elif found["text"]:
            # A row of the table of faults has a name and a clause for the log; no client sees them.
            new = None if "{Reason::" in line else other_text(text)
            if new is not None:
                yield Change(file, at, text, new, "text")
        elif text in ("true", "false"):
            yield Change(file, at, text, "false" if text == "true" else "true", "truth")
        elif found["word"] and text in swapped and "case " not in line:
            yield Change(file, at, text, swapped[text], "name")


def statement_changes(file: str, source: str) -> Iterator[Change]:
    """Statements of one line that are left out, and conditions that are negated."""
    at = 0
    ends_before = "{"
    for line in source.split("\n"):
        code = re.sub(r"\s*//.*", "", line)
        text = code.strip()
        is_whole = ends_before in ("{", "}", ";", ":", ")") or ends_before.endswith("else")
        if is_whole and STATEMENT.fullmatch(text) and not NOT_CHANGED.search(text):
            yield Change(file, at + code.index(text), text, ";", "statement left out")
        for found in CONDITION.finditer(code):
            if "constexpr" not in code and ";" not in found["inside"]:
                inside = found["inside"]
                yield Change(file, at + found.start("inside"), inside, f"!({inside})", "condition")
        if text:
            ends_before = "else" if text.endswith("else") else text[-1]
        at += len(line) + 1


def changes(sources: Mapping[str, str]) -> list[Change]:
    """Every change of these sources, in the order of files and places."""
    found = []
    for file, source in sorted(sources.items()):
        here = [*token_changes(file, source), *statement_changes(file, source)]
        found += sorted(here, key=lambda one: (one.start, one.kind, one.after))
    return found


def drawn(sources: Mapping[str, str], seed: int, count: int) -> list[Change]:
    """As many changes at random; of one seed a longer list begins with the shorter one."""
    found = changes(sources)
    random.Random(seed).shuffle(found)
    return found[:count]
