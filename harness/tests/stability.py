"""Does the same server get the same verdicts each time? A program; see `make stability`.

It checks each server again and again and keeps the verdicts of each check. In the end it tells what
differed: each check is compared with what most checks of that server said.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from httpmark.harness.model.errors import HarnessError
from httpmark.harness.tests.shared import check_verdicts
from httpmark.harness.tests.shared.check_verdicts import Checked, Verdicts
from httpmark.harness.tests.shared.repository import ROOT

SERVERS = (
    "reference", "go_net_http", "node", "nginx", "apache", "uvicorn", "rust_hyper", "aiohttp",
    "express",
)  # fmt: skip
_CASES_TOLD = 8


def options(words: Sequence[str] | None) -> argparse.Namespace:
    known = argparse.ArgumentParser(prog="stability", description=__doc__)
    known.add_argument("--rounds", type=int, default=20, help="how often each server is checked")
    known.add_argument("--server", action="append", help="check this one alone; repeatable")
    known.add_argument("--quick", action="store_true", help="check --quick, instead of all")
    known.add_argument(
        "--busy", action="store_true", help="share both processors with programs that never wait"
    )
    known.add_argument("--folder", type=Path, default=ROOT / "build" / "stability")
    return known.parse_args(words)


def kept(file: Path) -> Checked:
    """A check that was kept by :func:`keep`."""
    told = json.loads(file.read_text("utf-8"))
    verdicts = {name: Counter(counts) for name, counts in told["verdicts"].items()}
    return Checked(told["code"], told["seconds"], verdicts)


def keep(one: Checked, file: Path) -> None:
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(one._asdict()), "utf-8")
    partial.rename(file)


def usual(checks: Sequence[Verdicts]) -> Verdicts:
    """What most checks said of each name."""
    names = sorted({name for one in checks for name in one})
    found = {}
    for name in names:
        said = Counter(tuple(sorted(one.get(name, Counter()).items())) for one in checks)
        found[name] = Counter(dict(said.most_common(1)[0][0]))
    return found


def told(name: str, checks: Sequence[Checked]) -> tuple[str, bool]:
    """What the checks of one server say, and whether they agree: one exit code, and fewer than one
    verdict of a thousand different in each."""
    most = usual([one.verdicts for one in checks])
    differing = [check_verdicts.different(one.verdicts, most) for one in checks]
    worst = max(sum(one.values()) for one in differing)
    codes = Counter(one.code for one in checks)
    seconds = sorted(one.seconds for one in checks)
    lines = [
        f"{name}: {len(checks)} checks of {check_verdicts.total(most):,} verdicts, "
        f"{seconds[0]:.0f} to {seconds[-1]:.0f} s; exit code "
        + ", ".join(f"{code} ({count} times)" for code, count in codes.most_common()),
        f"  different from what most said: at most {worst} in one check, "
        f"{sum(sum(one.values()) for one in differing)} in all",
    ]
    by_case = sum((Counter(one) for one in differing), Counter[str]())
    lines += [f"    {case}: {number}" for case, number in by_case.most_common(_CASES_TOLD)]
    if len(by_case) > _CASES_TOLD:
        lines.append(f"    and {len(by_case) - _CASES_TOLD} more")
    agree = len(codes) == 1 and worst * 1000 < check_verdicts.total(most)
    return "\n".join(lines), agree


def main(words: Sequence[str] | None = None) -> int:
    given = options(words)
    names = given.server or list(SERVERS)
    form = "-".join(["quick" if given.quick else "full"] + ["busy"] * given.busy)
    given.folder.mkdir(parents=True, exist_ok=True)
    asked = ["--quick"] if given.quick else []
    absent: dict[str, str] = {}
    for number in range(given.rounds):
        for name in names:
            file = given.folder / f"{name}-{form}-{number}.json"
            if file.exists() or name in absent:
                continue
            scratch = given.folder / "now"
            shutil.rmtree(scratch, ignore_errors=True)
            try:
                one = check_verdicts.checked(name, scratch, *asked, is_busy=given.busy)
            except HarnessError as error:
                absent[name] = str(error)
                continue
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            keep(one, file)
            print(f"{name}: check {number + 1} of {given.rounds}, {one.seconds:.0f} s", flush=True)
    all_agree = not absent
    for name in names:
        files = [given.folder / f"{name}-{form}-{number}.json" for number in range(given.rounds)]
        if name in absent:
            print(f"{name}: not checked: {absent[name]}")
            continue
        text, agree = told(name, [kept(file) for file in files])
        print(text)
        all_agree = all_agree and agree
    return 0 if all_agree else 1


if __name__ == "__main__":
    sys.exit(main())
