"""Where the functions of a C++ source begin and end, in the shape that clang-format keeps."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# What is no code. Numbers are matched so that the quote in 1'000 opens no character.
NO_CODE = re.compile(
    r"""
    (?P<directive> ^[ \t]*\# (?: \\\n | /\*.*?\*/ | [^\n] )* )
    | (?P<comment> //[^\n]* | /\*.*?\*/ )
    | (?P<raw> \b(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)" )
    | (?P<text> "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
    | (?P<number> \b[0-9](?:'?[\w.])* )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
TEMPLATE = re.compile(r"^\s*template\s*<")
ATTRIBUTES = re.compile(r"\[\[.*?\]\]|\balignas\s*\([^()]*\)", re.DOTALL)
ACCESS = re.compile(r"^\s*(?:public|private|protected)\s*:(?!:)")
CONTAINER = re.compile(
    r"^\s*(?:(?:inline|typedef|static|constexpr|const|export)\s+)*"
    r"(?:(?:namespace|class|struct|union|enum)\b|extern\s*\"\s*\"\s*$)"
)
# No part gives back what it took: a long declaration would be tried in every other cut.
NAME = re.compile(r"(?<!\w)((?:~?\w++(?:<[^()<>]*>)?(?:::)?)++)\s*\(\)")
OPERATOR_NAME = re.compile(r"(?<!\w)[\w:~]*\boperator\b[^(]*(?:\(\))?(?=\()")
OPERATOR = re.compile(r"\boperator\s*(?:\(\s*\)|\[\s*\]|[^\s\w(]+)")
LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)[^(){};=]*)?$")
LAMBDA_HEAD_MAX = 2000  # characters
MEMBERS = re.compile(r"\)[^()]*(?<!:):(?!:)")
BODY_NEXT = re.compile(
    r"\)\s*(?:(?:const|volatile|noexcept(?:\s*\(\))?|override|final|&&?|try)\s*)*"
    r"(?:->[^()]*|requires\b.*)?$",
    re.DOTALL,
)
TEST = re.compile(r"^\s*(TYPED_TEST(?:_P)?|TEST(?:_[FP])?)\s*\(([^()]*)\)\s*$")
BRACKETS = re.compile(r"([()\[\]])")
PIECES = re.compile(r"[{};()]|[^{};()]+")


@dataclass(frozen=True)
class CppFunction:
    """A function with a body, or a lambda that stands in no function."""

    name: str
    line: int
    """Of the brace that opens its body."""
    body_lines: int
    """Between the lines of its braces."""


def code_of(source: str) -> str:
    """The source without comments, directives, and what strings hold; lines stay where they are."""

    def blank(found: re.Match[str]) -> str:
        if found["number"] is not None:
            return found[0]
        kept = re.sub(r"[^\n]", " ", found[0])
        return f'"{kept[2:]}"' if found["raw"] or found["text"] else kept

    return NO_CODE.sub(blank, source)


def without_template(head: str) -> str:
    """A declaration without `template <...>` before it."""
    while found := TEMPLATE.match(head):
        depth, at = 1, found.end()
        while depth and at < len(head):
            depth += {"<": 1, ">": -1}.get(head[at], 0)
            at += 1
        head = head[at:]
    return head


def outside_brackets(head: str) -> str:
    """A declaration with nothing inside its brackets: `f(int a = 1)` is `f()`."""
    kept, depth = "", 0
    for piece in BRACKETS.split(head):
        depth -= piece in (")", "]")
        if depth == 0:
            kept += piece
        depth += piece in ("(", "[")
    return kept


def name_of(head: str) -> str:
    """The name of what a declaration declares; of a test, with its macro."""
    if found := TEST.match(head):
        return f"{found[1]}({' '.join(found[2].split())})"
    bare = outside_brackets(head)
    if found := OPERATOR_NAME.search(bare):
        return "".join(found[0].split())
    found = NAME.search(bare)
    return found[1] if found else "?"


@dataclass
class Scan:
    """What stands open while a source is read from its front."""

    open_braces: list[str] = field(default_factory=list)
    function: tuple[str, int, int] | None = None
    """Name, line, and how many braces are open around it."""
    head: str = ""
    """The declaration so far."""

    def declaration(self) -> str:
        return ATTRIBUTES.sub("", without_template(ACCESS.sub("", self.head)))

    def kind(self) -> str:
        """What the brace opens that stands behind `head`."""
        if self.function is not None:
            return "block"
        if "table" in self.open_braces:  # whose rows are all in the head: its end says enough
            return "lambda" if LAMBDA.search(self.head[-LAMBDA_HEAD_MAX:]) else "table"
        head = self.declaration()
        if CONTAINER.match(head):
            return "container"
        bare = outside_brackets(OPERATOR.sub("operator", head))
        if "=" in bare:
            return "lambda" if LAMBDA.search(head) else "table"
        # `C(int a) : a_{a} {`: the first brace initialises a member.
        is_body = re.search(r"[)}]\s*$", bare) if MEMBERS.search(bare) else BODY_NEXT.search(bare)
        return "function" if is_body else "table"


def functions(source: str) -> list[CppFunction]:
    """The functions of one source, in their order. Lambdas and local classes belong to theirs."""
    found: list[CppFunction] = []
    scan = Scan()
    line = 1
    round_brackets = 0
    for piece in PIECES.findall(code_of(source)):
        line += piece.count("\n")
        if piece == "{":
            kind = scan.kind()
            if kind in ("function", "lambda"):
                name = "lambda" if kind == "lambda" else name_of(scan.declaration())
                scan.function = (name, line, len(scan.open_braces))
            scan.open_braces.append(kind)
            if kind != "table":
                scan.head = ""
            else:
                scan.head += "{"
        elif piece == "}":
            if not scan.open_braces:
                raise ValueError(f"line {line}: a brace is closed that none opened")
            kind = scan.open_braces.pop()
            if scan.function is not None and len(scan.open_braces) == scan.function[2]:
                name, begin, _ = scan.function
                found.append(CppFunction(name, begin, max(0, line - begin - 1)))
                scan.function = None
            scan.head = scan.head + "}" if kind == "table" else ""
        elif piece == ";" and round_brackets == 0:
            scan.head = ""
        else:
            round_brackets += (piece == "(") - (piece == ")")
            scan.head += piece
    if scan.open_braces or round_brackets:
        raise ValueError("a bracket is never closed")
    return found
