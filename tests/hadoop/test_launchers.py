"""Step 1 on nodes without Python, started as users do: settings, then a launcher. All three steps are in test_tutorial.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conftest import RunCdxmill

from .conftest import Hadoop
from .packed import BARE_NODE, pack

ROOT = Path(__file__).parents[2]
NAMES = ("iana", "dupes")
PLACE = "hdfs:///launchers"


@pytest.fixture
def env(hadoop: Hadoop, pywb_warcs: Path, tmp_path: Path) -> dict[str, str]:
    """Settings for the launchers; archives and their list are in HDFS. The nodes of step 1 have no Python: it is sent with the job."""
    archive = pack(tmp_path)
    (tmp_path / "warc.paths").write_text("".join(f"{name}.warc.gz\n" for name in (*NAMES, "absent")))
    python = f"sh {BARE_NODE} {hadoop.directory} environment/bin/python"
    (tmp_path / "index_env.sh").write_text(
        f"""
        export RUNNER=hadoop WARC_MANIFEST={PLACE}/warc.paths WARC_BUCKET={PLACE}/warcs WARC_CDX_BUCKET={PLACE}/cdx
        INDEX_OPTIONS=(--archives {archive}#environment --python-bin "{python}" --warcs-per-map 3)
        """
    )
    hadoop.fs("-mkdir", "-p", f"{PLACE}/warcs")
    archives = [pywb_warcs / f"{name}.warc.gz" for name in NAMES]
    hadoop.fs("-put", *archives, f"{PLACE}/warcs/")
    hadoop.fs("-put", tmp_path / "warc.paths", f"{PLACE}/")
    return {"INDEX_ENV": str(tmp_path / "index_env.sh"), "CDXMILL_VENV": sys.prefix}


def test_archives_are_indexed_on_nodes_without_python(
    hadoop: Hadoop, env: dict[str, str], run_cdxmill: RunCdxmill, pywb_warcs: Path, tmp_path: Path
) -> None:
    done = hadoop.run(ROOT / "bin/runindexwarcs.sh", env=env, check=False)
    said = done.stderr.decode()
    assert done.returncode == 1, said  # one archive is absent, and told
    assert f"{PLACE}/warcs/absent.warc.gz\t".encode() in done.stdout
    assert "2 of 3 archives indexed, 1 with failures" in said
    assert said.splitlines()[-1].startswith("runindexwarcs.sh: done, but some inputs failed")
    archives = [pywb_warcs / f"{name}.warc.gz" for name in NAMES]
    assert run_cdxmill("index", "-q", "-o", tmp_path / "cdx", *archives).returncode == 0
    for name in NAMES:
        expected = (tmp_path / f"cdx/{name}.cdx.gz").read_bytes()
        assert hadoop.fs("-cat", f"{PLACE}/cdx/{name}.cdx.gz") == expected
