"""What was found out about a target, in words."""

from __future__ import annotations

from httpmark.harness.model.cases import Facts, OwnAnswers
from httpmark.harness.report.target_facts import facts_told


def test_everything_that_was_found_is_told_and_no_secret() -> None:
    facts = Facts(
        host="example.org", address="::1", port=8443, path="/health", scheme="https",
        capabilities=("hello", "body", "behave.404"),
        limits={
            "head_bytes": 32768, "field_line_bytes": 8177, "fields": 100, "content_bytes": None,
        },
        timeouts={"idle_s": 5.0, "head_s": 2.5, "write_s": 0},
        timeouts_found=("idle_s",),
        header=("Authorization: Bearer secret",),
        slowest_ms=12,
        at_once=256,
    )  # fmt: skip
    told = dict(facts_told(facts))
    assert told == {
        "address": "https://[::1]:8443/",
        "path": "GET /health, Host: example.org",
        "POST": "POST /health",
        "fields": "Authorization: sent with every request",
        "can do": "answers GET, sends content back (body), behave.404",
        "limits": "head 32 KiB, field line 8,177 bytes, fields 100",
        "timeouts": "idle 5 s (found by asking), head 2.5 s",
        "slowest": "12 ms, of a few plain requests",
        "at once": "256 plain requests",
    }
    assert "secret" not in str(told)


def test_what_is_not_known_says_how_to_declare_it() -> None:
    told = dict(facts_told(Facts(host="a", unix="/run/a.sock")))
    assert told["address"] == "unix:/run/a.sock"
    assert told["limits"] == told["timeouts"] == "none known; --manifest FILE declares them"
    assert not {"fields", "slowest", "at once"} & told.keys()


def test_what_the_application_itself_answers_is_told_where_it_is_no_2xx() -> None:
    own = OwnAnswers(unknown_path=404, query=200, head=405)
    told = dict(facts_told(Facts(host="a", post_path=None, own=own)))
    assert told["answers"] == "404 to an unknown path, 405 to HEAD"
    assert "--post-path PATH" in told["POST"]
    own = OwnAnswers(unknown_path=200, query=200, head=200, post=303, post_empty=201)
    told = dict(facts_told(Facts(host="a", post_path="/form", own=own)))
    assert told["answers"] == "303 to POST"
    assert told["POST"] == "POST /form"
