"""All three steps on the cluster, started as users do: settings, then launchers."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

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
    (tmp_path / "index_env.sh").write_text(
        f"""
        export RUNNER=hadoop SHARDS=3
        export WARC_MANIFEST={PLACE}/warc.paths WARC_BUCKET={PLACE}/warcs WARC_CDX_BUCKET={PLACE}/cdx
        export WARC_CDX='{PLACE}/cdx/*.cdx.gz' SPLIT_FILE={PLACE}/splits.seq
        export ZIPNUM_CLUSTER_DIR={PLACE}/$YEARWEEK/indexes
        INDEX_OPTIONS=(--archives {archive}#environment --python-bin "sh {BARE_NODE} {hadoop.directory} environment/bin/python")
        """
    )
    hadoop.run("hadoop", "fs", "-mkdir", "-p", f"{PLACE}/warcs")
    archives = [pywb_warcs / f"{name}.warc.gz" for name in NAMES]
    hadoop.run("hadoop", "fs", "-put", *archives, f"{PLACE}/warcs/")
    hadoop.run("hadoop", "fs", "-put", tmp_path / "warc.paths", f"{PLACE}/")
    return {"INDEX_ENV": str(tmp_path / "index_env.sh"), "CDXMILL_VENV": sys.prefix}


def test_from_archives_in_hdfs_to_a_published_cluster(
    hadoop: Hadoop, env: dict[str, str], tmp_path: Path
) -> None:
    launcher = (ROOT / "bin/run_index_hadoop.sh", "2026-44", f"{PLACE}/warc.paths")
    done = hadoop.run(*launcher, env=env, check=False)
    said = done.stderr.decode()
    assert done.returncode == 1, said  # one archive is absent, and told
    assert f"{PLACE}/warcs/absent.warc.gz\t".encode() in done.stdout
    assert "2 of 3 archives indexed, 1 with failures" in said
    assert said.splitlines()[-1].startswith("run_index_hadoop.sh: done, but some inputs failed")

    again = hadoop.run(*launcher, env=env, check=False)
    assert again.returncode == 2
    assert f"{PLACE}/2026-44/indexes: holds a finished cluster" in again.stderr.decode()

    hadoop.run(ROOT / "bin/publish_index.sh", "2026-44", "november", env=env)
    metadata = hadoop.run("hadoop", "fs", "-cat", f"{PLACE}/2026-44/metadata.yaml").stdout
    assert metadata == b'title: "November 2026 Index"\n'

    hadoop.run("hadoop", "fs", "-get", f"{PLACE}/2026-44/indexes", f"{PLACE}/cdx", tmp_path)
    check_cluster(tmp_path / "indexes", [tmp_path / f"cdx/{name}.cdx.gz" for name in NAMES])


def check_cluster(cluster: Path, indexes: list[Path]) -> None:
    shards = sorted(cluster.glob("cdx-*"))
    lines = b"".join(gzip.decompress(path.read_bytes()) for path in shards).splitlines()
    indexed = [gzip.decompress(path.read_bytes()) for path in indexes]
    assert lines == sorted({line for data in indexed for line in data.splitlines()})
    assert len(json.loads((cluster / "cluster.json").read_bytes())["shards"]) == len(shards) == 3
