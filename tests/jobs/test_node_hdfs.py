"""Tasks on a Hadoop node read and write HDFS by cdxmill.storage, as commands do, with Python 3.9 and nothing installed, too."""

from __future__ import annotations

import gzip
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from cdxmill.running.failures import Failure
from tests.conftest import RunCdxmill
from tests.jobs.conftest import chunks_in, packed_nodes, page_line, run_task, shuffled, task_done
from tests.jobs.test_node_tasks import PACKER, pythons
from tests.storage.name_node import NameNode, name_node

SHELL = Path(__file__).parents[1] / "storage/hadoop_shell.py"
LINES = [page_line(number) for number in range(3000)]
NAME = "a b%41+c=ü [x]{y}.cdx.gz"


@pytest.fixture
def hdfs() -> Iterator[NameNode]:
    with name_node() as server:
        server.put(f"/cdx/{NAME}", gzip.compress(b"\n".join(LINES)))
        server.put("/cdx/cut.cdx.gz", gzip.compress(b"\n".join(LINES))[:-9])
        yield server


def chunks_of(sent: bytes) -> tuple[list[bytes], list[str]]:
    """The lines that a mapper sends, and its failures."""
    failures: list[Failure] = []
    lines = [line for text in chunks_in(sent, failures) for line in text.split(b"\n")]
    return lines, list(map(str, failures))


def work(*urls: str) -> bytes:
    return json.dumps({"paths": urls}).encode() + b"\n"


OLDEST = [path for path in pythons() if path.parents[1].name.startswith("3.9.")][:1]


@pytest.mark.parametrize("python", [*OLDEST, Path(sys.executable)], ids=lambda path: path.parents[1].name)
def test_every_python_reads_and_writes_hdfs(hdfs: NameNode, tmp_path: Path, python: Path) -> None:
    (tmp_path / "cdxmill_splits.txt").write_bytes(b"")
    urls = [f"hdfs:///cdx/{name}" for name in (NAME, "cut.cdx.gz", "absent.cdx.gz")]
    environ = {"CDXMILL_WEBHDFS": hdfs.address, "mapreduce_job_user_name": "archivist"}
    chunks = ("chunks", *PACKER[:2])
    hdfs.cuts = [1000]  # a connection is lost
    sent = run_task(*chunks, data=work(*urls), cwd=tmp_path, python=python, environ=environ)
    lines, failures = chunks_of(sent)
    assert lines == LINES
    assert failures == [
        f"{urls[1]}: the file is truncated inside a gzip member; none of its lines are in the cluster: rebuild this index",
        f"{urls[2]}: cannot be read (no such file); none of its lines are in the cluster: check the path",
    ]
    own = "hdfs:/clusters/C/_temporary/0/attempt_1"  # as Hadoop writes hdfs:///
    shard = ("shard", "--cluster", "hdfs:///clusters/C", *PACKER)
    environ["mapreduce_task_output_dir"] = own
    run_task(*shard, data=shuffled([sent], b""), cwd=tmp_path, python=python, environ=environ)
    place = own.removeprefix("hdfs:")
    written = {path.removeprefix(place): file.body for path, file in hdfs.files.items() if place in path}
    assert written.keys() == {"/cdx-00000.gz", "/part-00000", "/_report-00000"}
    assert gzip.decompress(written["/cdx-00000.gz"]) == b"".join(line + b"\n" for line in LINES)
    assert {query["user.name"] for _, _, query in hdfs.seen} == {"archivist"}


@pytest.mark.parametrize("has_urllib3", [True, False])
def test_hadoop_fs_is_used_where_webhdfs_cannot_be(tmp_path: Path, has_urllib3: bool) -> None:
    """WebHDFS does not answer, or the node's Python cannot use urllib3."""
    nodes, home = tmp_path / "nodes", tmp_path / "home"
    ignored = shutil.ignore_patterns(*([] if has_urllib3 else ["none-any"]))
    shutil.copytree(packed_nodes(), nodes, ignore=ignored)
    (home / "bin").mkdir(parents=True)
    (home / "bin/hadoop").write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {SHELL} "$@"\n')
    (home / "bin/hadoop").chmod(0o755)
    (tmp_path / "hdfs/cdx").mkdir(parents=True)
    (tmp_path / "hdfs/cdx" / NAME).write_bytes(gzip.compress(b"\n".join(LINES)))
    (tmp_path / "cdxmill_splits.txt").write_bytes(b"")
    environ = {"HADOOP_HOME": str(home), "HADOOP_SHELL_ROOT": str(tmp_path / "hdfs"), "HADOOP_USER_NAME": "a"}
    command = [sys.executable, "-I", "-S", str(nodes / "hadoop_task.py"), "chunks", *PACKER[:2]]
    done = subprocess.run(
        command,
        input=work(f"hdfs:///cdx/{NAME}", "hdfs:///cdx/absent.cdx.gz"),
        cwd=tmp_path,
        env={"CDXMILL_WEBHDFS": "http://127.0.0.1:1", **environ},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    lines, failures = chunks_of(done.stdout)
    assert lines == LINES
    absent = "cannot be read (no such file); none of its lines are in the cluster: check the path"
    assert failures == [f"hdfs:///cdx/absent.cdx.gz: {absent}"]
    reason = "no connection: http://127.0.0.1:1" if has_urllib3 else "urllib3 cannot be used (No module named"
    notes = [line for line in done.stderr.decode().splitlines() if line.startswith("note: ")]
    assert len(notes) == 1
    assert notes[0].startswith(f"note: {reason}")
    assert notes[0].endswith("; hadoop fs is used instead of WebHDFS, which takes longer")
    own = "hdfs:///clusters/C/_temporary/0/attempt_1"
    environ |= {"CDXMILL_WEBHDFS": "http://127.0.0.1:1", "mapreduce_task_output_dir": own}
    shard = ("shard", "--cluster", "hdfs:///clusters/C", *PACKER)
    run_task(*shard, data=shuffled([done.stdout], b""), cwd=tmp_path, environ=environ)
    written = {path.name for path in (tmp_path / "hdfs" / own.removeprefix("hdfs:///")).iterdir()}
    assert written == {"cdx-00000.gz", "part-00000", "_report-00000"}


def asked_of(silent: socket.socket) -> int:
    """How many connections wait for an answer. They are closed."""
    silent.setblocking(False)
    for number in count():
        try:
            silent.accept()[0].close()
        except BlockingIOError:
            return number
    raise AssertionError("not reached")


def test_tasks_and_commands_have_the_same_patience(
    tmp_path: Path, run_cdxmill: RunCdxmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name node that accepts connections and never answers: 3 s in a command were 32 s in a task."""
    (tmp_path / "cdxmill_splits.txt").write_bytes(b"")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        url, limit = "hdfs:///cdx/a.cdx.gz", {"CDXMILL_WEBHDFS": address, "CDXMILL_PATIENCE": "1"}
        environ = {**limit, "HADOOP_USER_NAME": "a"}
        variables = {**environ, "PATH": "/none"}
        failed = task_done("chunks", *PACKER[:2], data=work(url), cwd=tmp_path, environ=variables)
        by_task = asked_of(silent)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        done = run_cdxmill("zipnum", "-q", "-s", "1", "-o", tmp_path / "C", url)
        by_command = asked_of(silent)
    reason = f"did not answer (timed out: {address}) for 1 s"
    assert failed.returncode == 1
    assert failed.stderr.endswith(f"cdxmill: {url}: {reason}; run it again\n".encode())
    assert (done.returncode, done.stderr.decode()) == (3, f"cdxmill: {url}: {reason}; run it again\n")
    assert 1 <= max(by_task, by_command) <= 2, "each waits a second for its answer"
