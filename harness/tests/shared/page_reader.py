"""Reads a page as a browser would, for the tests of what is drawn."""

from __future__ import annotations

from html.parser import HTMLParser

VOID_ELEMENTS = frozenset(
    (
        "meta",
        "img",
        "source",
        "input",
        "br",
        "hr",
        "link",
        "rect",
        "circle",
        "path",
        "use",
        "line",
        "polyline",
    )
)


class Reader(HTMLParser):
    """Reads a page as a browser's tokenizer would; notes what is wrong or left open."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[str] = []
        self.ids: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if len(found) != len(attrs):
            self.wrong.append(f"an attribute twice in <{tag}>")
        self.elements.append((tag, found))
        if "id" in found:
            self.ids.append(found["id"])
        if tag not in VOID_ELEMENTS:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID_ELEMENTS:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()} closes {self.open[-3:]}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif not (self.open and self.open[-1] == "style"):
            self.text.append(data)

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"a comment: {data[:40]}")


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader
