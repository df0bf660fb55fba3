"""What images/README.md demands of each capability, asked of a server that runs.

Each check takes a :class:`Place`, returns in words what it saw, and raises :class:`Broken` where
that is not what the contract says.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from httpmark.harness.http import response_reader
from httpmark.harness.http.address import endpoint
from httpmark.harness.http.response_reader import Response
from httpmark.harness.model.cases import FILE_TEXT, SECRET, SECRET_TEXT
from httpmark.harness.servers import sockets
from httpmark.harness.servers.websocket_echo import echo_messages

ASK_DEADLINE_S = 5.0
_SECOND_S = 10.0  # NanoHTTPD closes five seconds after an answer behind which it dropped a request
_EARLY_S = 2.0  # what has not answered by then waits for the content
HELLO = b"Hello World!"
_BIG_BYTES = 1 << 20
_SLOW_S, _SLOW_MOST_S = 0.5, 2.5
_MIRROR_KEYS = {
    "method", "target", "authority", "version", "content", "fields", "trailers", "request_number",
}  # fmt: skip
_MIRROR_METHODS = ("POST", "GET", "PUT", "DELETE", "PATCH", "OPTIONS")
# Of these a length is sent without content, too (RFC 9110 8.6).
_CONTENT_METHODS = ("POST", "PUT", "PATCH")
_OWN_RULES = (405, 501)  # how a server says that a method is not for this resource (RFC 9110 9.1)


class Broken(Exception):
    """An answer is not what the contract says; the text is what came instead."""


class Closed(Broken):
    """The connection was closed between two answers."""


class Place(NamedTuple):
    """Where a server runs, and how to speak to it there."""

    address: str
    port: int
    ca_file: str | None = None  # speak TLS, and verify its certificate against this file
    files_only: bool = False  # a path without a file gets 404

    @property
    def host(self) -> str:
        return endpoint(self.address, self.port)


class Dialogue:
    """Requests and their answers on one connection, or on several if the server closes each."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._host = place.host
        self._connect()

    def _connect(self) -> None:
        self.connection = sockets.Connection(
            self._place.address,
            self._place.port,
            deadline_s=ASK_DEADLINE_S,
            ca_file=self._place.ca_file,
        )
        self._received = b""
        self._closes = False
        self.asked = 0  # requests on this connection

    def __enter__(self) -> Dialogue:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.__exit__()

    def ask(self, method: str, target: str, content: bytes = b"", fields: str = "") -> Response:
        """Send one request and read its answer, on a new connection if the last answer closes."""
        if self._closes:
            self.connection.__exit__()
            self._connect()
        self.asked += 1
        if content or method in _CONTENT_METHODS:
            fields += f"Content-Length: {len(content)}\r\n"
        self.send(f"{method} {target} HTTP/1.1\r\nHost: {self._host}\r\n{fields}\r\n", content)
        return self.answer(f"{method} {target}")

    def send(self, head: str, content: bytes = b"") -> None:
        try:
            self.connection.send(head.encode("ascii") + content)
        except OSError as error:
            line = head.partition("\r\n")[0]
            raise Broken(f"{line}: cannot be sent: {_plain(error)}") from None

    def answer(self, asked: str, *, deadline_s: float | None = None) -> Response:
        """Read the next final answer.

        :raises Broken: there is none, or it is no HTTP.
        """
        method = asked.partition(" ")[0].encode("ascii")
        ended = False
        while True:
            try:
                answer = response_reader.read_final(self._received, method=method, ended=ended)
                if answer.complete:
                    self._received = self._received[answer.end :]
                    self._closes = b"close" in b",".join(answer.values(b"connection")).lower()
                    return answer
            except response_reader.Malformed as error:
                raise Broken(f"{asked}: the answer is no HTTP: {error}") from None
            except response_reader.Incomplete:
                pass
            if ended:
                if not self._received:
                    raise Closed(f"{asked}: the connection was closed without an answer")
                raise Broken(f"{asked}: the connection was closed in mid-answer")
            try:
                piece = self.connection.receive(deadline_s=deadline_s)
            except OSError as error:
                raise Broken(f"{asked}: no whole answer: {_plain(error)}") from None
            self._received += piece
            ended = not piece


def _plain(error: OSError) -> str:
    return "time ran out" if isinstance(error, TimeoutError) else str(error.strerror or error)


def ask(place: Place, method: str, target: str, content: bytes = b"", fields: str = "") -> Response:
    """One request on a connection of its own."""
    with Dialogue(place) as dialogue:
        return dialogue.ask(method, target, content, fields)


def _demand(holds: bool, seen: str) -> None:
    if not holds:
        raise Broken(seen)


def _content(asked: str, answer: Response, wanted: bytes) -> None:
    _demand(answer.status == 200, f"{asked}: {answer.status} instead of 200")
    _demand(
        answer.content == wanted,
        f"{asked}: {_shown(answer.content)} instead of {_shown(wanted)}",
    )


def _shown(octets: bytes) -> str:
    return repr(octets)[1:] if len(octets) <= 32 else f"{len(octets)} bytes, {octets[:16]!r}..."


def _is_plain_text(answer: Response) -> bool:
    kinds = [kind.partition(b";")[0].strip().lower() for kind in answer.values(b"content-type")]
    return kinds == [b"text/plain"]


def check_hello(place: Place) -> str:
    """200, the type and the 12 bytes on every path; two requests in one write get two answers.

    A server may close after any answer (RFC 9112 9.3.2), so also after the first of the two.
    """
    others = () if place.files_only else ("/", "/some/other")
    for target in ("/hello", "/hello?query=1", *others):
        asked = f"GET {target}"
        answer = ask(place, "GET", target)
        _content(asked, answer, HELLO)
        kinds = b", ".join(answer.values(b"content-type")).decode("latin-1") or "none"
        untyped = place.files_only and not answer.values(b"content-type")
        typed = untyped or _is_plain_text(answer)
        _demand(typed, f"{asked}: Content-Type is {kinds}, not text/plain")
        _demand(answer.minor == 1, f"{asked}: HTTP/1.{answer.minor} instead of HTTP/1.1")
    posted = ask(place, "POST", "/hello", b"abc")
    if posted.status not in _OWN_RULES:
        _content("POST /hello", posted, HELLO)
    with Dialogue(place) as dialogue:
        dialogue.send(f"GET /hello HTTP/1.1\r\nHost: {place.host}\r\n\r\n" * 2)
        answer = dialogue.answer("GET /hello")
        _content("the first of two GET /hello in one write", answer, HELLO)
        two = "two requests in one write"
        try:
            second = dialogue.answer("GET /hello", deadline_s=_SECOND_S)
            _content("the second of two GET /hello in one write", second, HELLO)
        except Closed:
            two = f"of {two} the first, and a close"
    return f"GET 200 ({answer.framing}), POST {posted.status}, {two}"


def check_body(place: Place) -> str:
    """POST gets back what it sent, with a length and in chunks."""
    for content in (b"hello", b"", bytes(range(256)) * 300):
        _content(
            f"POST /body of {len(content)} bytes", ask(place, "POST", "/body", content), content
        )
    with Dialogue(place) as dialogue:
        head = f"POST /body HTTP/1.1\r\nHost: {place.host}\r\nTransfer-Encoding: chunked\r\n\r\n"
        dialogue.send(head, b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n")
        _content("POST /body in chunks", dialogue.answer("POST /body"), b"hello")
    return "0, 5 and 76800 bytes with a length, 5 in chunks"


def _json(asked: str, answer: Response) -> Any:
    _demand(answer.status == 200, f"{asked}: {answer.status} instead of 200")
    try:
        return json.loads(answer.content)
    except ValueError:
        raise Broken(f"{asked}: no JSON: {_shown(answer.content)}") from None


def check_echo(place: Place) -> str:
    """The decoded query parameters as a JSON object."""
    for query, parameters in (
        ("a=1&b=2", {"a": "1", "b": "2"}),
        ("hello=world", {"hello": "world"}),
        ("a=%41%20c&b=", {"a": "A c", "b": ""}),
    ):
        asked = f"GET /echo?{query}"
        told = _json(asked, ask(place, "GET", f"/echo?{query}"))
        _demand(told == parameters, f"{asked}: {json.dumps(told)}")
    return "three queries decoded"


def check_static(place: Place) -> str:
    """The file is served, and the secret above the folder is not."""
    _content("GET /static/ok.html", ask(place, "GET", "/static/ok.html"), FILE_TEXT.encode())
    above = (f"/static/../{SECRET}", f"/static/..%2f{SECRET}", f"/static/%2e%2e/{SECRET}")
    for target in above:
        try:
            content = ask(place, "GET", target).content
        except Broken:
            continue  # refused without an answer is refused
        _demand(SECRET_TEXT.encode() not in content, f"GET {target}: shows the secret")
    return f"ok.html served, the secret not shown in {len(above)} ways"


def _octets(asked: str, key: str, value: object) -> bytes | None:
    if value is None:
        return None
    try:
        return base64.b64decode(str(value), validate=True)
    except (binascii.Error, ValueError):
        raise Broken(f"{asked}: {key} is no base64: {value!r}") from None


def _pairs(asked: str, key: str, value: object) -> list[tuple[bytes, bytes]] | None:
    if value is None:
        return None
    if not isinstance(value, list) or any(len(pair) != 2 for pair in value):
        raise Broken(f"{asked}: {key} is no list of [name, value]")
    return [
        ((_octets(asked, key, name) or b"").lower(), _octets(asked, key, field) or b"")
        for name, field in value
    ]


def _mirrored(asked: str, answer: Response) -> dict[str, Any]:
    told = _json(asked, answer)
    keys = set(told) if isinstance(told, dict) else set()
    _demand(keys == _MIRROR_KEYS, f"{asked}: the keys are {', '.join(sorted(keys)) or 'none'}")
    for key in ("method", "target", "authority", "version", "content"):
        told[key] = _octets(asked, key, told[key])
    for key in ("fields", "trailers"):
        told[key] = _pairs(asked, key, told[key])
    return dict(told)


def _chunked_mirror(place: Place, *, trailers: str) -> dict[str, Any] | None:
    """What the server understood of a message in chunks; None where it refuses it by its rules."""
    with Dialogue(place) as dialogue:
        dialogue.send(
            f"POST /mirror HTTP/1.1\r\nHost: {place.host}\r\nTransfer-Encoding: chunked\r\n"
            f"{'Trailer: X-T' if trailers else 'X-Odd: v'}\r\n\r\n"
            f"5\r\nhello\r\n0\r\n{trailers}\r\n"
        )
        answer = dialogue.answer("POST /mirror")
    if 400 <= answer.status < 600 and answer.status != 404:
        return None
    return _mirrored("POST /mirror in chunks", answer)


def check_mirror(place: Place) -> str:
    """All keys, for several methods on one connection if the server keeps it, and for chunks."""
    content = bytes(range(256))
    nulls: set[str] = set()
    refused = []
    with Dialogue(place) as dialogue:
        for method in _MIRROR_METHODS:
            asked = f"{method} /mirror"
            sent = content if method == "POST" else b""
            answer = dialogue.ask(method, "/mirror?a=%41&b", sent, "X-Odd: v w\r\n")
            if answer.status in _OWN_RULES:
                refused.append(method)
                continue
            told = _mirrored(asked, answer)
            nulls |= {key for key, value in told.items() if value is None}
            wanted: dict[str, tuple[object, ...]] = {
                "method": (method.encode(),),
                # A server may show the target in its normal form, in which %41 is A.
                "target": (b"/mirror?a=%41&b", b"/mirror?a=A&b", None),
                "authority": (place.host.encode(), None),
                "version": (b"HTTP/1.1", None),
                "content": (sent,),
                "request_number": (dialogue.asked, None),
            }
            for key, values in wanted.items():
                _demand(told[key] in values, f"{asked}: {key} is {told[key]!r}")
            fields = told["fields"]
            has_odd = fields is None or (b"x-odd", b"v w") in fields
            _demand(has_odd, f"{asked}: X-Odd is not in fields")
            _demand(not told["trailers"], f"{asked}: trailers are {told['trailers']!r}")
    plain = _chunked_mirror(place, trailers="")
    _demand(plain is not None, "POST /mirror in chunks: refused")
    trailing = _chunked_mirror(place, trailers="X-T: v\r\n")
    for asked, one in (("in chunks", plain), ("with a trailer field", trailing)):
        if one is None:
            continue
        content = one["content"]
        _demand(content == b"hello", f"POST /mirror {asked}: content is {content!r}")
        nulls |= {key for key, value in one.items() if value is None}
    if trailing is None:
        refused.append("POST with a trailer field")
    else:
        _demand(
            trailing["trailers"] in (None, [(b"x-t", b"v")]),
            f"POST /mirror with a trailer field: trailers are {trailing['trailers']!r}",
        )
    seen = "all keys" + (f"; null: {', '.join(sorted(nulls))}" if nulls else "")
    return seen + (f"; refused: {', '.join(refused)}" if refused else "")


def _check_slow(place: Place) -> str:
    began = time.monotonic()
    status = ask(place, "GET", "/slow").status
    took = time.monotonic() - began
    _demand(status == 200, f"GET /slow: {status} instead of 200")
    _demand(took >= _SLOW_S, f"GET /slow: answered after {took * 1000:.0f} ms instead of 500")
    _demand(took <= _SLOW_MOST_S, f"GET /slow: answered after {took:.1f} s instead of 0.5")
    return f"200 after {took * 1000:.0f} ms"


def answers_early(place: Place) -> bool:
    """Whether POST /early is answered before its content is there; it must be answered then."""
    with Dialogue(place) as dialogue:
        dialogue.send(f"POST /early HTTP/1.1\r\nHost: {place.host}\r\nContent-Length: 10\r\n\r\n")
        try:
            answer = dialogue.answer("POST /early", deadline_s=_EARLY_S)
            is_early = True
        except Broken as error:
            if not str(error).endswith("time ran out"):
                raise
            dialogue.send("", b"0123456789")
            answer = dialogue.answer("POST /early")
            is_early = False
    _demand(answer.status == 200, f"POST /early: {answer.status} instead of 200")
    return is_early


def _check_early(place: Place) -> str:
    _demand(answers_early(place), "POST /early: answered only after the content was there")
    return "200 before the content"


def _status_in_step(path: str, status: int) -> Callable[[Place], str]:
    """A place that answers with a status; the next request on that connection is answered, too."""

    def check(place: Place) -> str:
        with Dialogue(place) as dialogue:
            answer = dialogue.ask("GET", path)
            asked = f"GET {path}"
            _demand(answer.status == status, f"{asked}: {answer.status} instead of {status}")
            if status == 304:
                _demand(bool(answer.values(b"etag")), f"{asked}: no ETag")
            if status == 302:
                location = b", ".join(answer.values(b"location"))
                _demand(location.endswith(b"/hello"), f"{asked}: Location is {_shown(location)}")
            if not answer.announces_close:
                dialogue.send(f"GET /hello HTTP/1.1\r\nHost: {place.host}\r\n\r\n")
                following = f"GET /hello after {asked}"
                _content(following, dialogue.answer(following), HELLO)
        return str(status)

    return check


def _check_404(place: Place) -> str:
    seen = _status_in_step("/404", 404)(place)
    for method in ("POST", "DELETE"):
        status = ask(place, method, "/404").status
        _demand(status == 404, f"{method} /404: {status} instead of 404")
    return seen


def _check_big(place: Place) -> str:
    answer = ask(place, "GET", "/big")
    _demand(answer.status == 200, f"GET /big: {answer.status} instead of 200")
    _demand(
        len(answer.content) == _BIG_BYTES,
        f"GET /big: {len(answer.content)} bytes instead of {_BIG_BYTES}",
    )
    return f"200 with {_BIG_BYTES} bytes"


def _check_get_only(place: Place) -> str:
    # Whether the answer to HEAD has content is up to the server, so it is asked alone.
    status = ask(place, "HEAD", "/get-only").status
    _demand(status == 200, f"HEAD /get-only: {status} instead of 200")
    _content("GET /get-only", ask(place, "GET", "/get-only"), HELLO)
    for method in ("POST", "DELETE", "OPTIONS"):
        answer = ask(place, method, "/get-only")
        _demand(answer.status == 405, f"{method} /get-only: {answer.status} instead of 405")
        allowed = {word.strip() for word in b",".join(answer.values(b"allow")).split(b",")}
        _demand(allowed == {b"GET", b"HEAD"}, f"{method} /get-only: Allow is {sorted(allowed)!r}")
    return "200 to GET and HEAD, else 405 with Allow"


PARTS: Mapping[str, Callable[[Place], str]] = {
    "behave.slow": _check_slow,
    "behave.early": _check_early,
    "behave.204": _status_in_step("/204", 204),
    "behave.304": _status_in_step("/304", 304),
    "behave.redirect": _status_in_step("/redirect", 302),
    "behave.big": _check_big,
    "behave.404": _check_404,
    "behave.get-only": _check_get_only,
}


def check_behave(place: Place) -> str:
    """Every place; ``/early`` may be answered late here (a server reads the content first)."""
    for name, check in PARTS.items():
        if name != "behave.early":
            check(place)
    early = "before" if answers_early(place) else "after"
    return f"{len(PARTS)} places; /early {early} the content"


def check_tls(place: Place) -> str:
    """The same on the TLS port, with the certificate that was given, in TLS 1.2 or 1.3."""
    with Dialogue(place) as dialogue:
        version = dialogue.connection.tls_version
    _demand(version in ("TLSv1.2", "TLSv1.3"), f"the session is {version or 'not TLS'}")
    return f"{version}: {check_hello(place)}"


def check_websocket(place: Place) -> str:
    """Messages of three sizes come back, and Close is answered (RFC 6455)."""
    with sockets.Connection(place.address, place.port, deadline_s=ASK_DEADLINE_S) as connection:
        try:
            trouble = echo_messages(connection, place.host)
        except OSError as error:
            trouble = _plain(error)
    _demand(trouble is None, f"/websocket: {trouble}")
    return "text and binary messages echoed, Close answered"


def check_events(place: Place) -> str:
    """Server-sent events, and no length said before them."""
    answer = ask(place, "GET", "/events")
    _demand(answer.status == 200, f"GET /events: {answer.status}")
    kind = b", ".join(answer.values(b"content-type"))
    _demand(kind.startswith(b"text/event-stream"), f"GET /events: Content-Type {kind!r}")
    _demand(answer.framing != "length", "GET /events: has a Content-Length")
    _demand(answer.content.count(b"\n\n") > 1, "GET /events: fewer than two events")
    return f"{answer.content.count(bytes(2 * [10]))} events, their length not said before"


CHECKS: Mapping[str, Callable[[Place], str]] = {
    "hello": check_hello,
    "body": check_body,
    "mirror": check_mirror,
    "behave": check_behave,
    **PARTS,
    "echo": check_echo,
    "tls": check_tls,
    "static": check_static,
    "websocket": check_websocket,
    "events": check_events,
}


def check(capability: str, place: Place) -> str:
    """Ask for one capability; in words what was seen.

    :raises Broken: the server does not answer as images/README.md says.
    """
    try:
        return CHECKS[capability](place)
    except OSError as error:  # nobody takes the connection, or no TLS session is agreed on
        raise Broken(f"no connection to {place.host}: {_plain(error)}") from None
