"""The commands of the tutorial for engineers, as a person types them in a shell of bin/hadoop-dev."""

from __future__ import annotations

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
