"""The commands of the tutorial for engineers, as a person types them in a shell of bin/hadoop-dev, and what comes after them."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from ..docs.pages import DOCS, link_launchers, marked
from .conftest import Hadoop

PAGE = DOCS / "tutorials/engineer.md"


def test_the_commands_of_the_tutorial_build_a_cluster_on_hadoop(hadoop: Hadoop, tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(sys.prefix)
    link_launchers(tmp_path)
    blocks = marked(PAGE, "sh hadoop")
    assert len(blocks) == 3
    script = f'set -e; cd "{tmp_path}"; PATH="$PWD/.venv/bin:$PATH"\n' + "".join(blocks)
    done = hadoop.run("bash", "-c", script)
    assert done.stdout.decode().splitlines()[-1] == "3"
    assert "from-hadoop: 183 lines in 2 blocks, 2 shards" in done.stderr.decode().splitlines()[-1]
    check_lines(hadoop, tmp_path)

    again = hadoop.run(tmp_path / "bin/run_index_hadoop.sh", check=False)
    assert again.returncode == 2
    assert "hdfs:///tutorial/indexes: holds a finished cluster" in again.stderr.decode()

    settings = tmp_path / "index_env.sh"
    settings.write_text(settings.read_text().replace("/tutorial/indexes", "/tutorial/$YEARWEEK/indexes"))
    hadoop.fs("-mkdir", "/tutorial/2026-44")
    hadoop.fs("-mv", "/tutorial/indexes", "/tutorial/2026-44/indexes")
    hadoop.run(tmp_path / "bin/publish_index.sh", "2026-44", "november")
    assert hadoop.fs("-cat", "/tutorial/2026-44/metadata.yaml") == b'title: "November 2026 Index"\n'


def check_lines(hadoop: Hadoop, directory: Path) -> None:
    """The shards have the lines of the indexes, sorted."""
    hadoop.fs("-get", "/tutorial/cdx", directory.as_uri())
    shards = sorted((directory / "from-hadoop").glob("cdx-*"))
    lines = b"".join(gzip.decompress(path.read_bytes()) for path in shards).splitlines()
    indexes = [gzip.decompress(path.read_bytes()) for path in (directory / "cdx").glob("*.cdx.gz")]
    assert lines == sorted({line for data in indexes for line in data.splitlines()})
    assert len(json.loads((directory / "from-hadoop/cluster.json").read_bytes())["shards"]) == len(shards)
