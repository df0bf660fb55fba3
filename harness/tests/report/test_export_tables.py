"""Every table in every form: the same rows, absent as absent, and no cell that acts."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import msgspec
import pyarrow.parquet
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.gate import findings
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.cases import Level
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.verdicts import (
    Compliance,
    Difference,
    SuiteResult,
    Tally,
    Verdict,
    Word,
)
from httpmark.harness.report import agreement, byte_maps, export_formats, export_tables
from httpmark.harness.tests.shared.command_process import run as command
from httpmark.harness.tests.shared.made_findings import (
    CONTROLS_FAIL,
    OCTET_FAMILIES,
    hostile_run,
    mixed,
    run_of,
)
from httpmark.harness.tests.shared.made_run import (
    CompleteEvidence,
    MadeEvidence,
    complete_run,
    made_run,
    with_server,
)

VERDICT = Verdict("length-two", Word.FAIL, "REJ", "200", None, Level.MUST)
RUN = mixed()
FOUND = findings.findings(RUN)
ALL = export_tables.tables(RUN, FOUND)


def test_there_is_a_row_for_everything() -> None:
    assert len(ALL["servers"].rows) == len(RUN.servers)
    assert len(ALL["load"].rows) == sum(len(server.load) for server in RUN.servers)
    assert len(ALL["samples"].rows) == sum(
        len(load.samples) for server in RUN.servers for load in server.load
    )
    assert len(ALL["findings"].rows) == len(FOUND)
    assert {"environment", "families", "conformance", "memory"} <= set(ALL)
    for table in ALL.values():
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert len(set(table.columns)) == len(table.columns)


def test_a_row_holds_the_fields_of_the_result() -> None:
    load = dict(zip(ALL["load"].columns, ALL["load"].rows[0], strict=True))
    of = RUN.servers[0].load[0]
    assert of.interval_95 is not None
    assert load["requests_per_second"] == of.requests_per_second
    assert load["cpu_ns_per_request.server"] == of.cpu_ns_per_request.server
    assert (load["interval_95.0"], load["interval_95.1"]) == of.interval_95
    assert load["bottleneck"] == of.bottleneck.value
    assert "histogram" not in load, "a histogram is no cell"
    suite = dict(zip(ALL["conformance"].columns, ALL["conformance"].rows[0], strict=True))
    assert suite["controls.passed"] == 342
    assert suite["score_percent"] is None
    assert "3 of 345" in str(suite["reason"])


def test_cases_are_rows_and_never_columns() -> None:
    tally = Tally(words={Level.MUST: {Word.PASS: 7, Word.FAIL: 2}}, failures=(VERDICT,))
    suite = SuiteResult(
        score_percent=50.0,
        cases={"length-two": VERDICT, "length-plus": VERDICT},
        generated={"length_octet": tally},
        answers={"RESP-01": tally},
        requirements={"one-length": Word.FAIL},
    )
    found = export_tables.tables(run_of("reference", compliance=Compliance({"rfc": suite})))

    def rows(name: str) -> list[dict[str, object]]:
        return [dict(zip(found[name].columns, row, strict=True)) for row in found[name].rows]

    assert [(row["case"], row["word"], row["actual"]) for row in rows("cases")] == [
        ("length-two", "fail", "200")
    ] * 2
    assert [(row["family"], row["words.MUST.fail"]) for row in rows("generated")] == [
        ("length_octet", 2), ("RESP-01", 2)
    ]  # fmt: skip
    assert rows("requirements")[0]["verdict"] == "fail"
    assert len(found["conformance"].columns) < 30


def rows_of(found: dict[str, export_tables.Table], name: str) -> list[dict[str, object]]:
    return [dict(zip(found[name].columns, row, strict=True)) for row in found[name].rows]


def test_what_a_page_shows_is_a_table_too(tmp_path: Path) -> None:
    only = OCTET_FAMILIES
    run = complete_run(("reference", "null", "go_net_http"), only=only)
    difference = Difference("path_byte", 33, 35, ("path_byte-80", "path_byte-81"), 4)
    seed = msgspec.structs.replace(
        CONTROLS_FAIL, published="differs", differences=(difference,),
        generated={"a_byte": Tally(words={Level.MUST: {Word.FAIL: 1}}, failures=(VERDICT,))},
    )  # fmt: skip
    suites = {**run.servers[2].compliance.suites, "seed": seed}
    run = with_server(run, "go_net_http", compliance=Compliance(suites))
    with Evidence(tmp_path / "evidence.sqlite", create=True) as store:
        for server in ("reference", "null", "go_net_http"):
            store.add(server, CompleteEvidence(only=only).exchanges(server))
    found = export_tables.tables(run, evidence=tmp_path / "evidence.sqlite")
    deliveries = rows_of(found, "deliveries")
    assert [(row["server"], row["cuts"], row["disagreements"]) for row in deliveries] == [
        ("reference", 2235, 0), ("null", 2235, 1), ("go_net_http", 2235, 1)
    ]  # fmt: skip
    divided = rows_of(found, "disagreements")[0]
    assert (divided["server"], divided["count"], divided["deliveries"]) == (
        "null", 3, "two@17, two@18, byte"
    )  # fmt: skip
    (differs,) = rows_of(found, "differences")
    assert (differs["family"], differs["published_detected"], differs["detected"]) == (
        "path_byte", 33, 35
    )  # fmt: skip
    assert differs["cases"] == "path_byte-80, path_byte-81"
    assert [(row["of"], row["case"]) for row in rows_of(found, "failures")] == [
        ("controls", "control_hello"), ("a_byte", "length-two")
    ]  # fmt: skip
    assert len(found["ratios"].rows) == len(run.paired) > 0
    assert {"interval_95.0", "interval_95.1", "pairs"} <= set(found["ratios"].columns)
    agreed = {(row["of"], row["server"], row["other"]): row["percent"]
              for row in rows_of(found, "agreement")}  # fmt: skip
    seen = {s: byte_maps.look(one, CompleteEvidence(only=only), byte_maps.places(loading.load()))
            for one in run.servers if not one.unavailable for s in (one.name,)}  # fmt: skip
    grid = agreement.of_cases(seen)
    assert grid is not None
    assert agreed["cases", "reference", "null"] == grid.rows[0][1]
    assert len(agreed) == 2 * 3
    assert len(found["ladder"].rows) == 3 * 3
    # Without evidence nobody knows who agrees.
    assert export_tables.tables(run)["agreement"].rows == ()


def test_csv_and_json_give_the_rows_back() -> None:
    for table in ALL.values():
        rows = list(csv.reader(io.StringIO(export_formats.as_csv(table), newline="")))
        if table.rows:
            assert tuple(rows[0]) == table.columns
        assert len(rows) == 1 + len(table.rows)
        read = json.loads(export_formats.as_json([table]))[table.name]
        assert [tuple(row.values()) for row in read] == [
            tuple(row) for row in json.loads(json.dumps(table.rows))
        ]


def test_markdown_is_a_table_whatever_is_in_it() -> None:
    run = hostile_run()
    text = export_formats.as_markdown(export_tables.tables(run, findings.findings(run)).values())
    assert "<b>" not in text
    widths = 0
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        bars = {line.replace("\\|", "").count("|") for line in lines}
        assert len(bars) <= 1, block
        widths += len(lines)
    assert widths > 10


def test_no_cell_is_a_formula() -> None:
    table = export_tables.Table(
        "x", "", ("a",), (("=1+1",), ("@x",), ("-2",), (-2,), (None,), (True,))
    )
    assert export_formats.as_csv(table) == "a\r\n'=1+1\r\n'@x\r\n'-2\r\n-2\r\n\"\"\r\ntrue\r\n"


def test_parquet_gives_the_rows_back(tmp_path: Path) -> None:
    for table in ALL.values():
        path = tmp_path / f"{table.name}.parquet"
        export_formats.write_parquet(table, path)
        read = pyarrow.parquet.read_table(path)
        assert tuple(read.column_names) == table.columns
        assert read.num_rows == len(table.rows)
    load = pyarrow.parquet.read_table(tmp_path / "load.parquet").to_pylist()
    assert load[0]["requests_per_second"] == RUN.servers[0].load[0].requests_per_second
    assert load[0]["reason"] is None


def test_every_exchange_goes_to_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_formats, "_BATCH", 100)
    made = MadeEvidence(only=("path_byte", "field_value_byte"))
    with Evidence(tmp_path / "evidence.sqlite", create=True) as store:
        for server in ("reference", "go_net_http"):
            store.add(server, made.exchanges(server))
    made_exchanges = list(made.exchanges("go_net_http"))
    paths = list(
        export_formats.export(
            RUN, FOUND, (), "parquet", tmp_path / "p", evidence=tmp_path / "evidence.sqlite"
        )
    )
    assert {path.stem for path in paths} == {*ALL, "exchanges"}
    read = pyarrow.parquet.read_table(tmp_path / "p" / "exchanges.parquet")
    rows = [row for row in read.to_pylist() if row["server"] == "go_net_http"]
    assert len(rows) == len(made_exchanges)
    assert {(row["case"], row["sent"], row["received"], row["outcome"]) for row in rows} == {
        (one.case, one.sent, one.received, one.outcome.value) for one in made_exchanges
    }


def test_what_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HarnessError, match="known are servers"):
        export_formats.choose(ALL, ["lod"])
    with pytest.raises(HarnessError, match="--out DIR, or one table with --table"):
        export_formats.printed(RUN, FOUND, (), "csv")
    with pytest.raises(HarnessError, match="--out DIR"):
        export_formats.printed(RUN, FOUND, ("load",), "parquet")
    with pytest.raises(HarnessError, match="for --parquet only"):
        list(export_formats.export(RUN, FOUND, ("exchanges",), "csv", tmp_path))
    with pytest.raises(HarnessError, match="no evidence"):
        list(
            export_formats.export(
                RUN, FOUND, ("exchanges",), "parquet", tmp_path, evidence=tmp_path / "e"
            )
        )
    with pytest.raises(HarnessError, match="name another folder"):
        list(export_formats.export(RUN, FOUND, (), "csv", Path("/proc/nowhere")))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(HarnessError, match=r"pip install 'httpmark\[parquet\]'"):
        list(export_formats.export(RUN, FOUND, (), "parquet", tmp_path / "q"))
    assert not (tmp_path / "q").exists()


def test_a_run_of_ten_servers_prints_in_every_form() -> None:
    run = made_run(only=("path_byte",))
    assert json.loads(export_formats.printed(run, (), (), "json"))["samples"]
    assert export_formats.printed(run, (), ("load",), "csv").count("\r\n") == 1 + 2 * (
        len(run.servers) - 1
    )
    assert export_formats.printed(run, (), (), "markdown").count("\n## ") == len(ALL) - 1


@pytest.mark.process
def test_tables_that_cannot_be_printed_go_beside_the_run(tmp_path: Path) -> None:
    assert export_formats.folder_of(tmp_path, (), "csv") == tmp_path / "tables"
    assert export_formats.folder_of(tmp_path, ("load", "cases"), "csv") == tmp_path / "tables"
    assert export_formats.folder_of(tmp_path, ("load",), "parquet") == tmp_path / "tables"
    assert export_formats.folder_of(tmp_path, ("load",), "csv") is None
    assert export_formats.folder_of(tmp_path, (), "json") is None
    (tmp_path / "result.json").write_bytes(msgspec.json.encode(RUN))
    code, out, errors = command("export", str(tmp_path), "--csv", cwd=tmp_path)
    assert code == 0, errors
    assert {Path(line).name for line in out.splitlines()} == {f"{name}.csv" for name in ALL}
    assert (tmp_path / "tables" / "load.csv").read_text().startswith("server,")
