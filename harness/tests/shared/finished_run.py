"""One finished run of the main job, for all tests that only look at it.

It takes minutes, so that the workers of xdist share it: the first one that needs it makes it, the
others wait. Whoever changes a run copies the folder first.
"""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.tests.shared.command_process import run
from httpmark.harness.tests.shared.ports import own_port
from httpmark.harness.tests.shared.pytest_rules import starts_process

SEED = 5
_LEFT = "left"


def _make(folder: Path) -> None:
    """Call the command as a user would; what came of it is said to the workers that wait.

    Without ``rfc``, which a default run asks as well: it would take longer than all the rest.
    """
    folder.mkdir()
    profiles = [word for name in loading.load().default_plans for word in ("--profile", name)]
    code, out, errors = run(
        "run", "--quick", "--suite", "seed", *profiles, "--runtime", "process",
        "--server", "reference", "--server", "null", "--server", "nginx", "--out", "r",
        "--seed", str(SEED), "--port", str(own_port()),
        cwd=folder, timeout=1200,  # a quiet machine needs two minutes, a busy one ten
    )  # fmt: skip
    # Now, as a reader of the evidence has files of its own beside it.
    names = sorted(path.name for path in (folder / "r").glob("*"))
    (folder / _LEFT).write_text("\n".join(names))
    wrong = "" if code == 0 and str(Path("r") / "report.html") in out else f"{code}: {errors}"
    (folder / "wrong").write_text(wrong)


def files_left(run_folder: Path) -> list[str]:
    """The names of the files that the run left in its folder when it ended."""
    return (run_folder.parent / _LEFT).read_text().splitlines()


@pytest.fixture(scope="session")
@starts_process
def finished(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder of a finished run of the servers reference, null and nginx."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    folder = shared / "finished"
    with (shared / "finished.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _make(folder)
    wrong = folder / "wrong"
    assert wrong.exists(), "the run was interrupted"
    assert not wrong.read_text(), wrong.read_text()
    return folder / "r"
