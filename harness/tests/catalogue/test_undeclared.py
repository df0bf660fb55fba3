"""Why a case does not apply says what to add to the manifest, in words that a manifest takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from httpmark.harness.catalogue import loading, undeclared, vocabulary
from httpmark.harness.model.cases import STATIC_FILE_FACTS, Facts
from httpmark.harness.model.servers import LIMITS, TIMEOUTS
from httpmark.harness.servers import manifests

ROOT = Path(__file__).resolve().parents[3]


def test_every_case_that_a_bare_target_lacks_something_for_says_what_to_add() -> None:
    known = loading.load()
    bare = Facts(host="a:1")
    whys = {known.inapplicable(name, bare) for name in known.families} - {None}
    silent = [
        why
        for why in whys
        if why is not None
        and "docs/manifest.md" not in why
        and not why.startswith(("only over ", "needs tls", "needs a target ", "needs /early "))
    ]
    assert whys
    assert silent == []
    assert (ROOT / "docs" / "manifest.md").is_file()


@pytest.mark.parametrize(
    "need",
    [f"{kind}.{name}" for kind in ("timeout", "declared") for name in TIMEOUTS]
    + sorted(vocabulary.CAPABILITIES - {"tls"}),
)
def test_what_a_reason_names_a_manifest_takes(need: str, tmp_path: Path) -> None:
    said = undeclared.needs([need])
    if need in vocabulary.FOUND_BY_ASKING:
        assert "manifest" not in said
        return
    key = re.search(r"declare (?:the capability )?([a-z_0-9.-]+) in a manifest", said)
    assert key is not None, said
    kind, _, name = key[1].partition(".")
    text = (
        f"[{kind}]\n{name} = 5\n" if kind == "timeouts" else f'capabilities = ["hello", "{key[1]}"]'
    )
    file = tmp_path / "own.toml"
    file.write_text(text)
    manifests.declared(file)


@pytest.mark.parametrize("name", [f"limit.{one}" for one in LIMITS] + list(STATIC_FILE_FACTS))
def test_a_value_that_is_not_known_has_a_key_that_makes_it_known(name: str) -> None:
    said = undeclared.value(name)
    wanted = "limits." + name.removeprefix("limit.") if name.startswith("limit.") else "static"
    assert wanted in said
