"""The files of conf/cdx-server: systemd accepts the unit, and the commands of unit and container serve."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from importlib.metadata import metadata
from pathlib import Path

from bench.browser import find_program
from cdxmill.options.cdx_server import CdxServing

from ..material.cdx_server import COMMAND, cdx_server

UNIT = "cdxmill-cdx-server.service"
INSTALLED, SERVED = "/opt/cdxmill/.venv/bin/cdxmill", "/data/cluster"


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.M)
    assert match is not None, pattern
    return match[1]


def test_systemd_accepts_the_unit_and_its_command_serves(
    root: Path, many_cluster: Path, tmp_path: Path
) -> None:
    text = (root / "conf/cdx-server" / UNIT).read_text()
    (tmp_path / UNIT).write_text(text.replace(INSTALLED, str(COMMAND)))
    analyze = find_program(["systemd-analyze"], "systemd")
    done = subprocess.run([analyze, "verify", tmp_path / UNIT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    started = found(r"^ExecStart=(.*)$", text)
    installed, name, *arguments = shlex.split(started.replace(SERVED, str(many_cluster)))
    assert (installed, name) == (INSTALLED, "cdx-server")
    with cdx_server(*arguments) as server:
        assert server.ask("/web/cdx", url="*", limit=1).body


def test_the_container_installs_what_exists_and_its_command_serves(root: Path, many_cluster: Path) -> None:
    text = (root / "conf/cdx-server/Containerfile").read_text()
    assert (root / found(r"^# podman build -f (\S+) ", text)).samefile(root / "conf/cdx-server/Containerfile")
    assert (root / found(r" -c /src/(\S+) ", text)).is_file()
    extras = found(r" '/src\[(.*)\]'$", text).split(",")
    assert set(extras) <= set(metadata("cdxmill").get_all("Provides-Extra", []))
    assert {".git", ".venv", "build", "**/*.so"} <= set((root / ".dockerignore").read_text().split())
    port = found(r"^EXPOSE (\d+)$", text)
    assert found(r"^# podman run -p (\S+) ", text) == f"{port}:{port}"
    assert CdxServing(clusters=[]).port == int(port)
    name, command, *arguments = json.loads(found(r"^ENTRYPOINT (.*)$", text))
    assert (name, command) == ("cdxmill", "cdx-server")
    with cdx_server(
        *arguments, found(r":ro cdx-server (.*)$", text).replace("/cluster", str(many_cluster))
    ) as server:
        assert server.ask("/web/cdx", url="*", limit=1).body
