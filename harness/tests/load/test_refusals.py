"""Loads whose answers are not the expected 2xx: they measured nothing, and say what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.load import comparison, refusals, side_by_side
from httpmark.harness.load.engines import by_name, h2load, launch, wrk
from httpmark.harness.load.paired_verdicts import Gate
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadPlan, LoadRequest, LoadResult
from httpmark.harness.report import comparison_text
from httpmark.harness.servers import cpu_time
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.command_process import last_line
from httpmark.harness.tests.shared.command_process import run as command
from httpmark.harness.tests.shared.ports import own_port, wait_listening
from httpmark.harness.tests.shared.scripted_race import PLAN, Scripted, race, run
from httpmark.harness.tests.shared.silent_events import SilentEvents


@pytest.fixture(autouse=True)
def _who_else_ran_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine did during the windows of these tests must not change their samples."""
    monkeypatch.setattr(cpu_time, "idle_ns", lambda cpus: None)
    monkeypatch.setattr(cpu_time, "cpu_clock", lambda: (0, 0))


def refused(share: float, **statuses: int) -> dict[str, object]:
    """What an engine measured that was refused so often."""
    named = {status.removeprefix("s"): count for status, count in statuses.items()}
    return {
        "errors": {"status": sum(statuses.values())}, "statuses": named, "refused_ratio": share,
    }  # fmt: skip


def test_a_window_of_refusals_measured_nothing_and_is_told_with_its_status() -> None:
    made, engine = race({"a": [80.0] * 3, "null": [35.0] * 3}, a=refused(1.0, s404=9))
    result = run(made)["a"]
    assert (result.samples, result.refused, result.path) == ((), {"404": 9}, "/hello")
    assert result.reason == (
        "GET /hello was answered with 404, so nothing was measured: name a path that GET answers "
        "with 2xx, as --path /health"
    )
    assert engine.order.count("a") == 1, "it would be refused again"
    assert engine.order.count("null") <= 1, "there is nothing to hold against null"


def test_a_window_without_one_good_answer_measured_nothing() -> None:
    """A server that is silent, or that lies about each length, is not loaded again."""
    nothing: dict[str, object] = {"errors": {"timeout": 1}, "requests": 0}
    made, engine = race({"a": [80.0] * 3, "null": [35.0] * 3}, a=nothing)
    result = run(made)["a"]
    assert result.samples == ()
    assert result.reason == (
        "not one request was answered well (1 timeout), so nothing was measured: does GET /hello "
        "get a whole answer there?"
    )
    assert engine.order.count("a") == 1


def test_a_server_that_refuses_most_of_a_load_is_told_its_limit() -> None:
    limited = refused(0.93, s429=900, s503=30)
    result = run(race({"a": [80.0] * 3, "null": [35.0] * 3}, a=limited)[0])["a"]
    assert result.reason == (
        "GET /hello was answered with 429 and 503 in 93% of the answers, so nothing was measured: "
        "lift the limit that refuses them, or take another --profile"
    )


def test_a_few_refusals_discard_their_samples_as_any_wrong_answer_does() -> None:
    result = run(race({"a": [80.0] * 3, "null": [35.0] * 3}, a=refused(0.01, s503=5))[0])["a"]
    assert (result.rounds, result.reason, result.refused) == (3, None, {})
    assert result.errors == {"status": 15}
    assert refusals.of_result(result) == (
        "in every sample of p some answers were not the expected 2xx but 503, so nothing was "
        "measured"
    )
    good = msgspec.structs.replace(result.samples[0], errors={}, bottleneck="server")
    mixed = msgspec.structs.replace(result, samples=(*result.samples, good))
    assert refusals.of_result(mixed) is None, "one sample counts"


def test_other_wrong_answers_are_no_refusals() -> None:
    changes = {"errors": {"body": 5}}
    result = run(race({"a": [80.0] * 3, "null": [35.0] * 3}, a=changes)[0])["a"]
    assert refusals.of_result(result) is None


def test_a_mixed_load_has_no_path_to_name() -> None:
    plan = msgspec.structs.replace(PLAN, requests=(LoadRequest(path="/a"), LoadRequest()))
    made, _ = race({"a": [80.0] * 3, "null": [35.0] * 3}, a=refused(1.0, s404=1))
    made.plan = plan
    result = run(made)["a"]
    assert result.path is None
    assert "requests of p were answered with 404" in (result.reason or "")
    assert "--path" not in (result.reason or "")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (peers.NOT_FOUND, "answered with 404"),
        (b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n", "answered with 302"),
        (peers.OK, None),
    ],
)
def test_a_server_is_asked_once_before_an_engine_that_does_not_tell_the_status(
    answer: bytes, said: str | None
) -> None:
    """wrk takes a 3xx for good, and says of others only that they are above 399."""
    with peers.peer(peers.answering(answer)) as peer:
        target = launch.Target("127.0.0.1", peer.port, path="/a")
        if said is None:
            refusals.ask_first(PLAN, target)
            return
        with pytest.raises(refusals.Refused, match=f"GET /a was {said}"):
            refusals.ask_first(PLAN, target)


def test_who_says_nothing_is_left_to_the_engine() -> None:
    with peers.peer(peers.mute) as peer:
        pass
    refusals.ask_first(PLAN, launch.Target("127.0.0.1", peer.port))


def test_wrk_and_h2load_tell_what_share_was_refused() -> None:
    out = "  200 requests in 2.00s, 1.00KB read\n  Non-2xx or 3xx responses: 150\n"
    found = wrk.parse_wrk(out, failure="", plan=PLAN, client_cpu_ns=1)
    assert (found.refused_ratio, found.statuses) == (0.75, {"4xx or 5xx": 150})
    out = (
        "finished in 2.00s, 1.00 req/s, 1MB/s\n"
        "requests: 200 total, 200 started, 200 done, 50 succeeded, 150 failed, 0 errored, "
        "0 timeout\nstatus codes: 50 2xx, 100 3xx, 50 4xx, 0 5xx\n"
        "time for request:       63us      4.20ms       195us       219us    96.89%\n"
    )
    found = h2load.parse_h2load(out, failure="", plan=PLAN, client_cpu_ns=1)
    assert (found.refused_ratio, found.statuses) == (0.75, {"3xx": 100, "4xx": 50})


def test_a_base_that_refused_in_every_sample_is_nothing_to_compare_with() -> None:
    def result(**changes: object) -> LoadResult:
        return run(race({"a": [80.0] * 3, "null": [35.0] * 3}, a=changes)[0])["a"]

    good, bad = result(), result(**refused(0.1, s503=5))
    assert comparison.broken_answers(None, good, good) is None
    head = comparison.broken_answers(None, good, bad)
    assert head is not None
    assert (head.verdict, head.unmeasured) == (Gate.FAIL, False)
    for other in (good, bad):
        base = comparison.broken_answers(None, bad, other)
        assert base is not None
        assert (base.verdict, base.unmeasured) == (Gate.INCONCLUSIVE, True)
        assert "base: in every sample of p" in base.why


# --- the commands ------------------------------------------------------------------------------

APP = """
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
good = sys.argv[2]
class App(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and content in one write
    def do_GET(self):
        self.send_response(200 if self.path == good else 404)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *words):
        pass
ThreadingHTTPServer.request_queue_size = 128  # of a short queue, connections wait for seconds
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), App).serve_forever()
"""


@pytest.fixture
def app(tmp_path: Path) -> str:
    """An ordinary application of one exact route: its command without port and route."""
    (tmp_path / "app.py").write_text(APP)
    return f"{sys.executable} {tmp_path / 'app.py'}"


@pytest.fixture
def target(app: str) -> Iterator[str]:
    """The same as a server that runs already; only /only/here answers 2xx."""
    port = own_port()
    with subprocess.Popen([*app.split(), str(port), "/only/here"]) as process:
        wait_listening(port, until=True, seconds=20)
        yield f"http://127.0.0.1:{port}"
        process.kill()


BENCH = ("--profile", "keepalive", "--quick", "--rounds", "1", "--runtime", "process", "--json")


@pytest.mark.process
def test_bench_of_a_target_that_refuses_everywhere_exits_with_3(
    target: str, tmp_path: Path
) -> None:
    code, _, errors = command("bench", f"{target}/", *BENCH, cwd=tmp_path)
    assert code == 3
    assert "GET /hello was answered with 404 and GET / was answered with 404" in last_line(errors)
    assert "as --path /health" in last_line(errors)
    code, _, errors = command("bench", target, "--path", "/b", *BENCH, cwd=tmp_path)
    assert code == 3
    assert "GET /b was answered with 404, so nothing was measured" in last_line(errors)


@pytest.mark.process
def test_bench_takes_a_path_from_the_command_line_the_address_or_the_file(
    target: str, tmp_path: Path
) -> None:
    (tmp_path / "httpmark.toml").write_text('[bench]\npath = "/only/here"\n')
    words = (f"{target}/", f"{target}/only/here")
    code, out, errors = command("bench", *words, *BENCH, cwd=tmp_path)
    assert code == 0, errors
    servers = {one["name"]: one for one in json.loads(out)["servers"]}
    assert [servers[name]["load"][0]["path"] for name in words] == ["/only/here"] * 2
    code, _, errors = command("bench", *words, "--path", "/b", *BENCH, cwd=tmp_path)
    assert code == 3, "the command line beats both"
    assert "GET /b was answered with 404" in last_line(errors)
    code, _, errors = command("bench", target, "--path", "b", *BENCH, cwd=tmp_path)
    assert (code, "'b' is not a path" in errors) == (2, True)


@pytest.mark.process
def test_compare_exits_with_3_where_one_side_answers_no_2xx(app: str, tmp_path: Path) -> None:
    root, deep = f"{app} {{port}} /", f"{app} {{port}} /deep"
    words = ("--profile", "keepalive", "--quick", "--pairs", "3", "--runtime", "process", "--json")
    code, _, errors = command("compare", root, deep, *words, cwd=tmp_path)
    assert code == 3
    assert "GET /hello was answered with 404 and GET / was answered with 404" in last_line(errors)
    code, _, errors = command("compare", root, deep, "--path", "/deep", *words, cwd=tmp_path)
    assert code == 3
    assert "base could not be loaded with keepalive: GET /deep was answered with 404" in last_line(
        errors
    )


class Instant(Scripted):
    """An engine that has measured before it began, and remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__({})
        self.paths: list[str | None] = []

    def cost(self) -> float:
        return 100.0

    def measure(
        self, plan: LoadPlan, target: launch.Target, *, duration_s: float,
        cpus: frozenset[int] | None,
    ) -> launch.Measured:  # fmt: skip
        self.paths.append(target.path)
        return super().measure(plan, target, duration_s=duration_s, cpus=cpus)


@pytest.mark.process
def test_compare_asks_both_for_the_path_that_is_found_and_tells_it(
    app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Instant()
    monkeypatch.setattr(by_name, "engine", lambda name, *, wrk2: engine)
    root = f"{app} {{port}} /"
    asked = comparison.Options(
        base=root, head=root, profiles=("keepalive",), pairs=3, runtime="process", seed=1
    )
    found = side_by_side.SideBySide(asked, SilentEvents()).compare()
    assert found.paths == {"keepalive": ("/", "/")}
    assert "  requested: GET /" in comparison_text.lines(found)
    assert sorted(engine.paths, key=str) == ["/"] * 6 + [None] * 3, "null has the profile's"


@pytest.mark.process
def test_a_path_that_one_side_names_is_that_of_both(app: str, target: str) -> None:
    asked = comparison.Options(base=f"{target}/only/here", head=f"{app} {{port}} /only/here")
    arms = [side_by_side.Arm(name, getattr(asked, name), asked) for name in ("base", "head")]
    side_by_side.settle_paths(arms)
    assert [arm.path for arm in arms] == ["/only/here"] * 2
    named = msgspec.structs.replace(asked, path="/b")
    assert side_by_side.Arm("base", named.base, named).path == "/b"
    of_file = msgspec.structs.replace(named, own_path_first=True)
    assert side_by_side.Arm("base", of_file.base, of_file).path == "/only/here"


def test_a_comparison_with_a_load_that_measured_nothing_exits_with_3() -> None:
    def line(verdict: Gate, unmeasured: bool) -> comparison.Line:
        found = comparison.line_of("p", comparison.COST, "a", None, verdict, "why")
        return msgspec.structs.replace(found, unmeasured=unmeasured)

    def code(*lines: comparison.Line) -> int:
        found = comparison.Comparison(
            base="b", head="h", how="two runs", verdict=comparison.verdict_of(lines), lines=lines,
            notes=(), differences=(), seed=1,
        )  # fmt: skip
        return comparison.exit_code(found, inconclusive="warn")

    nothing = line(Gate.INCONCLUSIVE, True)
    assert code(nothing) == code(line(Gate.PASS, False), nothing) == Unusable.exit_code == 3
    assert code(nothing, line(Gate.FAIL, False)) == 1
    assert code(line(Gate.INCONCLUSIVE, False)) == 0
