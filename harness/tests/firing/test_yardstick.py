"""What an application itself answers to good requests."""

from __future__ import annotations

import re
from typing import cast

import msgspec

from httpmark.harness.firing import yardstick
from httpmark.harness.firing.targets import Target
from httpmark.harness.model.cases import OwnAnswers
from httpmark.harness.tests.shared.made_answers import answer

_LENGTH = re.compile(rb"(?i)\ncontent-length: *([0-9]+)")


class Application(Target, frozen=True, kw_only=True):
    """A target that answers by method and path, and 404 elsewhere; it counts what it is asked."""

    routes: dict[str, int | None]  # 0 is silence
    asked: list[str]

    def ask(self, octets: bytes, *, deadline_s: float) -> bytes | None:
        head, _, content = octets.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        assert len(content) == (int(length[1]) if length else 0), "a good request is whole"
        method, target, _ = head.partition(b"\r\n")[0].decode().split(" ")
        self.asked.append(f"{method} {target}")
        path = target.partition("?")[0]
        status = self.routes.get(f"{method} {path} {len(content)}")
        if status is None:
            status = self.routes.get(f"{method} {path}", 404)
        return answer(status) if status else b""


def application(routes: dict[str, int | None], path: str = "/", post_path: str = "") -> Target:
    made = Application(
        name="a", address="127.0.0.1", port=1, host="a", path=path, post_path=post_path,
        routes=routes, asked=[],
    )  # fmt: skip
    return cast(Target, made)


def test_an_exact_router_is_known_by_its_404() -> None:
    found = yardstick.applied(application({"GET /": 200, "HEAD /": 200, "POST /": 405}))
    assert found.own == OwnAnswers(unknown_path=404, query=200, head=200, post=405, post_empty=405)
    assert found.post_path is None
    assert found.facts().posted_to is None


def test_a_server_that_answers_everything_takes_post_at_its_path() -> None:
    routes: dict[str, int | None] = {
        f"{method} {path}": 200
        for method in ("GET", "HEAD", "POST")
        for path in ("/hello", "/any/of/them")
    }
    found = yardstick.applied(application(routes, "/hello"))
    assert found.own == OwnAnswers(unknown_path=200, query=200, head=200, post=200, post_empty=200)
    assert found.facts().posted_to == "/hello"


def test_the_path_that_the_user_names_takes_post() -> None:
    routes: dict[str, int | None] = {"GET /": 200, "HEAD /": 200, "POST /form": 303}
    found = yardstick.applied(application(routes, post_path="/form"))
    assert found.facts().posted_to == "/form"
    assert (found.own.post, found.own.post_empty) == (303, 303)


def test_a_path_that_refuses_content_does_not_take_post() -> None:
    for status in (400, 401, 403, 404, 405, 413, 501):
        routes: dict[str, int | None] = {"GET /": 200, "POST /form": status}
        found = yardstick.applied(application(routes, post_path="/form"))
        assert found.facts().posted_to is None, status


def test_a_path_that_refuses_no_content_does_not_take_post() -> None:
    routes: dict[str, int | None] = {"GET /": 200, "POST /": 200, "POST / 0": 400}
    assert yardstick.applied(application(routes)).facts().posted_to is None


def test_body_takes_post_where_the_path_does_not() -> None:
    routes: dict[str, int | None] = {"GET /": 200, "POST /": 405, "POST /body": 200}
    with_body = msgspec.structs.replace(application(routes), capabilities=("hello", "body"))
    assert yardstick.applied(with_body).facts().posted_to == "/body"


def test_what_is_known_is_not_asked_again() -> None:
    target = application({"GET /": 200, "POST /": 405})
    known = yardstick.applied(target).facts()
    asked = cast(Application, target).asked
    asked.clear()
    assert yardstick.applied(target, known).facts() == known
    assert asked == []


def test_silence_and_5xx_to_post_are_left_to_the_cases() -> None:
    for status in (500, 503, 0):
        routes: dict[str, int | None] = {"GET /": 200, "POST /": status}
        found = yardstick.applied(application(routes))
        assert found.facts().posted_to == "/", status


def test_what_routes_get_alone_is_never_asked_to_take_a_post() -> None:
    target = msgspec.structs.replace(
        application({"GET /": 200, "HEAD /": 404, "POST /": 200}), post_path=None
    )
    found = yardstick.applied(target)
    assert found.own == OwnAnswers(unknown_path=404, query=200, head=404)
    assert found.facts().posted_to is None
    assert [line for line in cast(Application, found).asked if line.startswith("POST")] == []
