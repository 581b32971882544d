"""The systemd unit of conf/cdx-server: systemd accepts it, and its command serves."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from bench.browser import find_program

from ..material.cdx_server import COMMAND, cdx_server

UNIT = "cdxmill-cdx-server.service"
INSTALLED, SERVED = "/opt/cdxmill/.venv/bin/cdxmill", "/data/cluster"


def test_systemd_accepts_the_unit_and_its_command_serves(
    root: Path, many_cluster: Path, tmp_path: Path
) -> None:
    text = (root / "conf/cdx-server" / UNIT).read_text()
    (tmp_path / UNIT).write_text(text.replace(INSTALLED, str(COMMAND)))
    analyze = find_program(["systemd-analyze"], "systemd")
    done = subprocess.run([analyze, "verify", tmp_path / UNIT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    started = re.search(r"^ExecStart=(.*)$", text, re.M)
    assert started is not None
    installed, name, *arguments = shlex.split(started[1].replace(SERVED, str(many_cluster)))
    assert (installed, name) == (INSTALLED, "cdx-server")
    with cdx_server(*arguments) as server:
        assert server.ask("/web/cdx", url="*", limit=1).body
