"""All three steps on the cluster, started as users do: settings, then launchers."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from .conftest import Hadoop

ROOT = Path(__file__).parents[2]
NAMES = ("iana", "dupes")


def test_from_archives_in_hdfs_to_a_published_cluster(
    hadoop: Hadoop, pywb_warcs: Path, tmp_path: Path
) -> None:
    place = "hdfs:///launchers"
    (tmp_path / "warc.paths").write_text("".join(f"{name}.warc.gz\n" for name in (*NAMES, "absent")))
    (tmp_path / "index_env.sh").write_text(
        f"""
        export RUNNER=hadoop SHARDS=3
        export WARC_MANIFEST={place}/warc.paths WARC_BUCKET={place}/warcs WARC_CDX_BUCKET={place}/cdx
        export WARC_CDX='{place}/cdx/*.cdx.gz' SPLIT_FILE={place}/splits.seq
        export ZIPNUM_CLUSTER_DIR={place}/$YEARWEEK/indexes
        INDEX_OPTIONS=(--python-bin {sys.executable})
        """
    )
    env = {"INDEX_ENV": str(tmp_path / "index_env.sh"), "CDXMILL_VENV": sys.prefix}
    hadoop.run("hadoop", "fs", "-mkdir", "-p", f"{place}/warcs")
    archives = [pywb_warcs / f"{name}.warc.gz" for name in NAMES]
    hadoop.run("hadoop", "fs", "-put", *archives, f"{place}/warcs/")
    hadoop.run("hadoop", "fs", "-put", tmp_path / "warc.paths", f"{place}/")

    launcher = (ROOT / "bin/run_index_hadoop.sh", "2026-44", f"{place}/warc.paths")
    done = hadoop.run(*launcher, env=env, check=False)
    said = done.stderr.decode()
    assert done.returncode == 1, said  # one archive is absent, and told
    assert f"{place}/warcs/absent.warc.gz\t".encode() in done.stdout
    assert "2 of 3 archives indexed, 1 with failures" in said
    assert said.splitlines()[-1].startswith("run_index_hadoop.sh: done but for what is named above")

    again = hadoop.run(*launcher, env=env, check=False)
    assert again.returncode == 2
    assert f"{place}/2026-44/indexes holds a finished cluster" in again.stderr.decode()

    hadoop.run(ROOT / "bin/publish_index.sh", "2026-44", "november", env=env)
    metadata = hadoop.run("hadoop", "fs", "-cat", f"{place}/2026-44/metadata.yaml").stdout
    assert metadata == b'title: "November 2026 Index"\n'

    hadoop.run("hadoop", "fs", "-get", f"{place}/2026-44/indexes", f"{place}/cdx", tmp_path)
    lines = b"".join(
        gzip.decompress(path.read_bytes()) for path in sorted((tmp_path / "indexes").glob("cdx-*"))
    )
    indexed = [gzip.decompress((tmp_path / f"cdx/{name}.cdx.gz").read_bytes()) for name in NAMES]
    assert lines.splitlines() == sorted({line for data in indexed for line in data.splitlines()})
    manifest = json.loads((tmp_path / "indexes/cluster.json").read_bytes())
    assert len(manifest["shards"]) == 3
