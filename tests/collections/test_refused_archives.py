"""An archive that `add` refuses leaves nothing in the cluster, so it is refused again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import RunCdxmill


def content(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("source", "name", "reason"),
    [
        ("example.warc.gz", "iana.warc.gz", b"another archive of this name"),
        ("iana.warc.gz", "copy.warc.gz", b"has the records of iana.warc.gz"),
    ],
)
def test_a_refused_archive_is_refused_again(
    source: str, name: str, reason: bytes, pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    cluster, more = tmp_path / "C", tmp_path / "more"
    assert run_cdxmill("build", "-q", "-s", "2", "-o", cluster, pywb_warcs / "iana.warc.gz").returncode == 0
    before = content(cluster)
    more.mkdir()
    shutil.copy(pywb_warcs / source, more / name)
    for _ in range(2):
        done = run_cdxmill("add", "-q", cluster, more)
        assert done.returncode == 1
        assert reason in done.stderr
        after = content(cluster)
        assert after["archives.tsv"] == before["archives.tsv"]
        assert after["cluster.idx"] == before["cluster.idx"]
        assert [path for path in after if path.startswith("cdx/") and name in path] == [
            path for path in before if path.startswith("cdx/") and name in path
        ]
