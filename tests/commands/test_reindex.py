"""`cdxmill reindex`: an index that is rewritten for the new archives is the index that `index` gives for them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cdxmill.cli.main import main

from .test_recompress import failures, inputs, noise, record, recompress

__all__ = ["inputs"]


def run(*args: str | Path) -> int:
    return main([str(arg) for arg in args])


def contents(folder: Path) -> dict[tuple[str, str], bytes]:
    """Each index by its folder, which is a number, and its name as it is without the endings of archives."""
    return {
        (path.parent.name, path.name.replace(".zst", "").replace(".warc", "").replace(".arc", "")): gzip.decompress(
            path.read_bytes()
        )
        for path in folder.rglob("*.cdx.gz")
    }


@pytest.fixture(scope="module")
def moved(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All samples as zst, with tables of offsets."""
    folder = tmp_path_factory.mktemp("zst")
    assert recompress("--offsets", "-o", folder, inputs) == 1
    return folder


@pytest.mark.parametrize("options", [(), ("--cdx11",), ("--cdx9",)], ids=["cdxj", "cdx11", "cdx9"])
def test_all_samples_get_the_index_of_the_new_archives(
    options: tuple[str, ...], inputs: Path, moved: Path, tmp_path: Path
) -> None:
    old, new, ours = (tmp_path / name for name in ("old", "new", "ours"))
    run("index", "-q", *options, "-o", old, inputs)
    run("index", "-q", *options, "-o", new, moved)
    assert run("reindex", "-q", "-o", ours, "--offsets", moved, old) in (0, 1)
    found, expected = contents(ours), contents(new)
    repaired = {Path(path).parent.name for path in failures(old)}  # recompress takes its records apart
    same = 0
    for (number, name), text in expected.items():
        lines = set(found.get((number, name), b"").splitlines())
        if number not in repaired:
            assert found[number, name] == text, number
            same += 1
        else:
            assert lines <= set(text.splitlines()), number
    assert same > 280
    assert not failures(ours)
