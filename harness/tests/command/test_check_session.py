"""Targets: which words name one, and what may not be tested without leave."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.command import check_options, check_session, rerun, stored_runs
from httpmark.harness.gate import conclusion, findings
from httpmark.harness.model import run_folder
from httpmark.harness.model.cases import Level
from httpmark.harness.model.errors import HarnessError, NothingSelected, Unusable
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import (
    Deliveries,
    Disagreement,
    SeedFamily,
    SuiteResult,
    Tally,
    Verdict,
    Word,
)
from httpmark.harness.servers import binaries, certificates, sockets
from httpmark.harness.tests.shared import command_process, crashing_server, peers
from httpmark.harness.tests.shared.made_findings import run_of
from httpmark.harness.tests.shared.pytest_rules import starts_process
from httpmark.harness.tests.shared.silent_events import SilentEvents


@pytest.mark.process
def test_a_selection_without_a_must_is_judged(tmp_path: Path) -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        options = check_options.Options(
            target=f"127.0.0.1:{peer.port}", suites=("resilience",), cases=("ROB-07",),
            out=tmp_path / "run",
        )  # fmt: skip
        result = check_session.Checker(options, SilentEvents()).check()
    found = result.servers[0].compliance.suites["resilience"]
    assert found.cases["markup-in-every-place"].word is Word.PASS


def test_only_what_a_ruleset_judges_goes_out(tmp_path: Path) -> None:
    options = check_options.Options(
        target="127.0.0.1:9", suites=("rfc",), ruleset="realistic", out=tmp_path / "run"
    )
    checker = check_session.Checker(options, SilentEvents())
    families = [checker.catalogue.families[name] for name in checker.selected]
    assert {family.realistic or bool(family.gates) for family in families} == {True}
    assert any(family.realistic for family in families)


def chosen(tmp_path: Path, handler: peers.Handler, *cases: str) -> Run:
    with peers.peer(handler) as peer:
        options = check_options.Options(
            target=f"127.0.0.1:{peer.port}", suites=("seed",), cases=cases, exclude=("CTRL",),
            out=tmp_path / "run",
        )  # fmt: skip
        return check_session.Checker(options, SilentEvents()).check()


@pytest.mark.process
def test_a_family_alone_is_scored_and_brings_its_controls(tmp_path: Path) -> None:
    result = chosen(tmp_path, peers.naive, "field_value_byte")
    found = result.servers[0].compliance.suites["seed"]
    assert list(found.families) == ["field_value_byte"]
    assert found.score_percent == 100.0
    assert found.controls is not None
    assert found.controls.passed > 1
    assert conclusion.exit_code(result, findings.findings(result), gate=findings.Gate()) == 0


@pytest.mark.process
def test_a_family_alone_is_not_scored_where_good_requests_are_refused(tmp_path: Path) -> None:
    result = chosen(tmp_path, peers.answering(peers.BAD), "field_value_byte")
    found = result.servers[0].compliance.suites["seed"]
    assert found.score_percent is None
    assert "positive controls failed" in (found.reason or "")


@pytest.mark.process
@pytest.mark.parametrize("handler", [peers.naive, peers.answering(peers.BAD)])
def test_controls_alone_are_judged(tmp_path: Path, handler: peers.Handler) -> None:
    with peers.peer(handler) as peer:
        options = check_options.Options(
            target=f"127.0.0.1:{peer.port}", suites=("seed",), cases=("CTRL",),
            out=tmp_path / "run",
        )  # fmt: skip
        result = check_session.Checker(options, SilentEvents()).check()
    code = conclusion.exit_code(result, findings.findings(result), gate=findings.Gate())
    assert code == (0 if handler is peers.naive else 3)


def keyed(connection: socket.socket) -> None:
    """Knows only those who bring the key."""
    while request := peers.head(connection):
        if b"\r\nX-Key: k\r\n" not in request:
            connection.sendall(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n")
        else:
            connection.sendall(peers.OK)


@pytest.mark.process
@pytest.mark.parametrize(("header", "code"), [(("X-Key: k",), 0), ((), 3)])
def test_field_lines_go_with_every_request(
    tmp_path: Path, header: tuple[str, ...], code: int
) -> None:
    with peers.peer(keyed) as peer:
        options = check_options.Options(
            target=f"127.0.0.1:{peer.port}", suites=("seed",), cases=("CTRL",), header=header,
            out=tmp_path / "run",
        )  # fmt: skip
        result = check_session.Checker(options, SilentEvents()).check()
    assert conclusion.exit_code(result, findings.findings(result), gate=findings.Gate()) == code


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("X-Key", "not a field line"),
        (": 1", "not a field line"),
        ("X-Key: a\r\nX-B: 1", "not a field line"),
        ("X-Key: \u20ac", "not a field line"),
        ("Host: b", "the cases themselves set"),
        ("content-length: 1", "the cases themselves set"),
    ],
)
def test_lines_that_would_spoil_the_cases_are_refused(line: str, said: str) -> None:
    with pytest.raises(HarnessError, match=said):
        check_options.field_lines((line,))


@pytest.mark.process
@pytest.mark.parametrize(("jobs", "most"), [(1, 1), (None, 64)])
def test_no_more_connections_than_jobs(tmp_path: Path, jobs: int | None, most: int) -> None:
    under_way: set[int] = set()
    seen: list[int] = []

    def counted(connection: socket.socket) -> None:
        under_way.add(connection.fileno())
        seen.append(len(under_way))
        try:
            peers.answering(peers.OK)(connection)
        finally:
            under_way.discard(connection.fileno())

    with peers.peer(counted) as peer:
        options = check_options.Options(
            target=f"127.0.0.1:{peer.port}", suites=("rfc",), out=tmp_path / "run", jobs=jobs,
            cases=("MTH-1*",),
        )  # fmt: skip
        check_session.Checker(options, SilentEvents()).check()
    # Those that end may be noticed after the next have begun, on a busy machine some of them.
    assert max(seen) <= 8 * most
    assert len(seen) > 10
    assert jobs is not None or max(seen) > 2


@pytest.fixture(scope="module")
@starts_process
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The reference server over each transport: how it is addressed, by the transport's name."""
    folder = tmp_path_factory.mktemp("places")
    pair = certificates.make(folder, address="127.0.0.1")
    with subprocess.Popen(
        [
            binaries.need("server"), "--workers", "1", "--address", "127.0.0.1", "--address", "::1",
            "--port", "0", "--tls-port", "0", "--unix", str(folder / "socket"),
            "--tls-cert", pair.certificate, "--tls-key", pair.key,
        ],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            lines = [server.stdout.readline() for _ in range(5)]
            found: dict[str, str] = {"cacert": pair.certificate}
            for line in lines:
                where = line.removeprefix("listening on ").strip()
                if where.startswith("unix:"):
                    found["unix"] = where
                elif where.endswith("(tls)") and where.startswith("127."):
                    found["tls"] = "https://" + where.partition(" ")[0]
                elif re.fullmatch(r"127[0-9.]+:[0-9]+", where):
                    found["tcp"] = where
                elif re.fullmatch(r"\[::1\]:[0-9]+", where):
                    found["ipv6"] = f"http://{where}/"
            yield found
        finally:
            server.terminate()


@pytest.mark.process
def test_a_target_may_be_a_name_and_shows_the_certificate_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"server.example": "127.0.0.1"}
    monkeypatch.setattr(sockets, "resolved", lambda name, port: known.get(name))
    authority = certificates.Authority(tmp_path)
    pair = authority.server("server.example")
    with subprocess.Popen(
        [
            binaries.need("server"), "--workers", "1", "--address", "127.0.0.1", "--port", "0",
            "--tls-port", "0", "--tls-cert", pair.certificate, "--tls-key", pair.key,
        ],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            lines = [server.stdout.readline() for _ in range(2)]
            [port] = [
                found[1] for line in lines if (found := re.search(r":([0-9]+) \(tls\)", line))
            ]

            def options(name: str) -> check_options.Options:
                return check_options.Options(
                    target=f"https://{name}:{port}/hello", suites=("rfc",), cases=("BASE-01",),
                    cacert=Path(authority.certificate), allow_remote=True, out=tmp_path / name,
                )  # fmt: skip

            result = check_session.Checker(options("server.example"), SilentEvents()).check()
            assert result.servers[0].compliance.suites["rfc"].score_percent == 100
            with pytest.raises(Unusable, match=r"the name nobody\.example has no address"):
                check_session.Checker(options("nobody.example"), SilentEvents()).check()
            known["other.example"] = "127.0.0.1"
            with pytest.raises(Unusable, match="nothing answers"):
                check_session.Checker(options("other.example"), SilentEvents()).check()
        finally:
            server.terminate()


SaidOf = dict[str, Word]


def said_over(places: dict[str, str], transport: str, folder: Path) -> SaidOf:
    """What a good part of two suites says over a transport, by case."""
    options = check_options.Options(
        target=places[transport], suites=("rfc", "smuggling"), out=folder / transport,
        cases=("realistic", "smuggling", "CONN-2*", "EOF", "absolute-form"),
        cacert=Path(places["cacert"]) if transport == "tls" else None,
    )  # fmt: skip
    result = check_session.Checker(options, SilentEvents()).check()
    suites = result.servers[0].compliance.suites.values()
    assert [suite.score_percent for suite in suites] == [100, 100]
    return {id: verdict.word for suite in suites for id, verdict in suite.cases.items()}


@pytest.fixture(scope="module")
@starts_process
def over_tcp(places: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> SaidOf:
    return said_over(places, "tcp", tmp_path_factory.mktemp("tcp"))


# The closure alert can be seen over TLS alone.
OTHERWISE = {"ipv6": set(), "unix": set(), "tls": {"connection-close-notify"}}


@pytest.mark.process
@pytest.mark.parametrize("transport", OTHERWISE)
def test_a_suite_says_the_same_over_every_transport(
    transport: str, places: dict[str, str], over_tcp: SaidOf, tmp_path: Path
) -> None:
    found = said_over(places, transport, tmp_path)
    assert len(over_tcp) > 100
    assert found.keys() == over_tcp.keys()
    assert {id for id in found if found[id] != over_tcp[id]} == OTHERWISE[transport]


def at_root(connection: socket.socket) -> None:
    """Has a front page and nothing else, as many write it: with a query it is another page."""
    while request := peers.head(connection):
        connection.sendall(peers.OK if request.startswith(b"GET / ") else peers.NOT_FOUND)


@pytest.mark.process
def test_the_front_page_is_found_by_asking(tmp_path: Path) -> None:
    with peers.peer(at_root) as peer:
        options = check_options.Options(
            target=f"127.0.0.1:{peer.port}", suites=("rfc",), quick=True,
            cases=("BASE-01", "PIPE-11", "TGT-02"), out=tmp_path / "run",
        )  # fmt: skip
        result = check_session.Checker(options, SilentEvents()).check()
    suite = result.servers[0].compliance.suites["rfc"]
    assert suite.reason is None
    for case in ("get-plain", "target-three-segments"):
        assert suite.cases[case].word is Word.PASS, "the 404 of an application is an answer"


@pytest.mark.process
def test_who_has_no_such_path_is_told_what_to_add(tmp_path: Path) -> None:
    with peers.peer(peers.answering(peers.NOT_FOUND)) as peer:
        options = check_options.Options(
            target=f"127.0.0.1:{peer.port}", suites=("rfc", "resilience"), quick=True,
            cases=("BASE-01", "PIPE-11", "reset-anywhere"), out=tmp_path / "run",
        )  # fmt: skip
        checker = check_session.Checker(options, SilentEvents())
        result = checker.check()
    suite = result.servers[0].compliance.suites["rfc"]
    assert suite.reason is not None
    assert suite.reason.startswith("not scored: a plain request is not accepted (404")
    assert "name a path that is, as --path /health" in suite.reason
    told = findings.findings(result, families=checker.catalogue.families)
    assert not any("does not answer" in one.message for one in told), "a 404 is an answer"
    assert " is not ACC" not in suite.reason


@pytest.mark.process
def test_who_is_accepted_is_told_nothing_more(tmp_path: Path) -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        said: list[str] = []

        class Heard(SilentEvents):
            def done(self, name: str, result: str) -> None:
                said.append(result)

        options = check_options.Options(
            target=f"127.0.0.1:{peer.port}", suites=("rfc",), cases=("BASE-01", "CL-01"),
            out=tmp_path / "run",
        )  # fmt: skip
        checker = check_session.Checker(options, Heard())
        result = checker.check()
        gate = conclusion.conclusion(result, findings.findings(result), 0)
        checker.conclude(gate)
    assert len(said) == 1
    assert re.fullmatch(r"[\d.]+ % of \d+ requirements; \d+ more do not apply", said[0])
    assert gate.headline in (tmp_path / "run" / "report.html").read_text()
    assert "memory_reason" in (tmp_path / "run" / "result.json").read_text()


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("127.0.0.1:1", "health"),
        ("127.0.0.1:1", ""),
        ("127.0.0.1:1", "/a b"),
        ("127.0.0.1:1/\u20ac", None),
    ],
)
def test_a_path_that_is_none_is_said_before_anything_is_asked(
    tmp_path: Path, target: str, path: str | None
) -> None:
    options = check_options.Options(target=target, suites=("rfc",), path=path, out=tmp_path / "run")
    with pytest.raises(HarnessError, match="is not a path: begin it with /"):
        check_session.Checker(options, SilentEvents())


def test_a_score_is_said_as_the_table_says_it() -> None:
    must = {"passed": 11, "failed": 1, "not_applicable": 3}
    suite = SuiteResult(score_percent=1100 / 12, must=must)
    assert check_session.score_in_words(suite) == "91.6 % of 12 requirements; 3 more do not apply"
    assert check_session.score_in_words(msgspec.structs.replace(suite, must=None)) == "91.6 %"
    idle = SuiteResult(score_percent=None, must={"passed": 0, "not_applicable": 10})
    assert check_session.score_in_words(idle) == "none of 10 requirements applies"
    assert (
        check_session.score_in_words(SuiteResult(score_percent=None)) == "no requirement was asked"
    )


def earlier(folder: Path, suite: SuiteResult) -> Path:
    """A run folder of an earlier check with this result."""
    made = run_of("reference", suite)
    folder.mkdir()
    run_folder.write(made, folder)
    return folder


def tallied(word: Word, case: str) -> Tally:
    shown = Verdict(case, word, "what was asked", "what came", None, Level.MUST)
    return Tally(words={Level.MUST: {word: 1}}, failures=(shown,))


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"answers": {"RESP-20": tallied(Word.FAIL, "get-plain")}}, ("get-plain",)),
        ({"answers": {"RESP-20": tallied(Word.FAIL, "method_octet-7b")}}, ("method_octet",)),
        ({"answers": {"RESP-20": tallied(Word.WARN, "get-plain")}}, ()),
        ({"generated": {"method_octet": tallied(Word.FAIL, "method_octet-7b")}}, ("method_octet",)),
        ({"generated": {"method_octet": tallied(Word.VOID, "method_octet")}}, ()),
        ({"families": {"path_byte": SeedFamily(34, 1, 34, 0, 1, 0)}}, ("path_byte",)),
        ({"families": {"path_byte": SeedFamily(35, 0, 35, 0, 0, 0)}}, ()),
        (
            {"deliveries": Deliveries(
                messages=1, fired={"two": 9}, disagreements=(
                    Disagreement(
                        case="get-plain", level=Level.CTRL, count=1, deliveries=("two@3",), what="x"
                    ),
                ),
            )},
            ("get-plain",),
        ),
    ],
)  # fmt: skip
def test_what_gates_a_run_is_what_a_rerun_takes(
    tmp_path: Path, more: dict[str, Any], wanted: tuple[str, ...]
) -> None:
    """Not only cases: a check on every answer, and deliveries that disagree, fail a run, too."""
    folder = earlier(tmp_path / "run", SuiteResult(score_percent=None, **more))
    known = loading.load()
    if wanted:
        assert rerun.failures(folder, known) == wanted
    else:
        with pytest.raises(NothingSelected, match="nothing failed in this run"):
            rerun.failures(folder, known)


@pytest.mark.process
def test_a_server_that_dies_of_a_case_is_a_finding_and_its_run_can_be_judged_again(
    tmp_path: Path,
) -> None:
    case = "transfer-encoding-gzip"
    code, out, _ = command_process.run(
        "check", "--serve", crashing_server.command("gzip"), "--quick", "--out", "run",
        "--suite", "rfc", "--case", case, "--case", "TE-01", "--junit", "junit.xml", cwd=tmp_path,
    )  # fmt: skip
    assert code == 1
    assert out.startswith(f"Dies of 1 request (killed by SIGABRT): {case}.")
    assert f"| {crashing_server.LAST_WORDS}" in out
    assert f"--suite rfc --case {case}" in out
    assert f'name="{case}-crash"' in (tmp_path / "junit.xml").read_text()
    assert 'class="crash"' in (tmp_path / "run" / "report.html").read_text()
    result = run_folder.read(tmp_path / "run")
    [server] = result.servers
    [crash] = server.crashes
    assert (crash.cases, crash.suite, crash.went_on) == ((case,), "rfc", True)
    suite = server.compliance.suites["rfc"]
    assert suite.cases[case].word is Word.FAIL
    assert suite.cases[case].actual == "the server died or hung of it"
    assert suite.score_percent is not None
    assert stored_runs.rejudge(tmp_path / "run").servers[0] == server


@pytest.mark.process
def test_a_known_crash_does_not_fail_the_gate(tmp_path: Path) -> None:
    check = (
        "check", "--serve", crashing_server.command("gzip"), "--quick", "--suite", "rfc",
        "--case", "transfer-encoding-gzip", "--inconclusive", "pass", "--baseline", "known.toml",
    )  # fmt: skip
    first, out, _ = command_process.run(*check, "--allow-growth", "known", cwd=tmp_path)
    assert "transfer-encoding-gzip-crash" in (tmp_path / "known.toml").read_text()
    again, out, _ = command_process.run(*check, cwd=tmp_path)
    assert (first, again) == (0, 0)
    assert "Dies of 1 request" in out, "it is told all the same"
