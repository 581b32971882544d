"""The files of a task on a node: which way each is read, and where what it has written is put."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdxmill.errors import InputError
from cdxmill.jobs.nodes.files import Destination, read_inputs
from cdxmill.storage.hadoop import hdfs, pick
from tests.storage.name_node import NameNode, name_node

SHELL = Path(__file__).parents[1] / "storage/hadoop_shell.py"


@pytest.fixture(autouse=True)
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory of a task, with an output directory in HDFS."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("mapreduce_task_output_dir", "hdfs:///out/_temporary/1")
    monkeypatch.setenv("HADOOP_USER_NAME", "archivist")


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameNode]:
    with name_node() as running:
        monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
        yield running
    for made in (hdfs._client, pick._picked, pick._say_once):
        made.cache_clear()


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A function that returns the words of all commands `hadoop` so far. Its file system is the directory `far`."""
    command = tmp_path / "home/bin/hadoop"
    command.parent.mkdir(parents=True)
    (tmp_path / "far").mkdir()
    command.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\nexec {sys.executable} -I -S {SHELL} "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HADOOP_SHELL_ROOT", str(tmp_path / "far"))
    return lambda: (tmp_path / "asked").read_text().splitlines()


def texts_of(urls: list[str]) -> dict[str, bytes | str]:
    """The content of each file, or why it cannot be read."""
    found: dict[str, bytes | str] = {}
    for url, pieces in read_inputs(urls):
        try:
            found[url] = b"".join(pieces)
        except InputError as error:
            assert error.path == url
            found[url] = f"{type(error).__name__}: {error.reason}"
    return found


def test_local_files_are_read_where_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a b%41+c=ü.cdx.gz"
    path.write_bytes(gzip.compress(b"a 2020 {}\n"))
    absent = (tmp_path / "absent.cdx").as_uri()
    found = texts_of([path.as_uri(), absent])
    assert found == {
        path.as_uri(): b"a 2020 {}\n",
        absent: "AbsentError: cannot be read (No such file or directory)",
    }
    assert capsys.readouterr().err == f"reporter:status:{path.as_uri()}\nreporter:status:{absent}\n"


def test_files_of_webhdfs_and_of_hadoop_are_read(
    node: NameNode, asked: Callable[[], list[str]], tmp_path: Path
) -> None:
    """Those of hadoop are copied with as few commands as possible. Files of one name do not replace each other."""
    node.put("/cdx/a.cdx", b"a 2020 {}\n")
    for name in ("one/a.cdx", "one/b.cdx", "two/a.cdx"):
        (tmp_path / "far" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "far" / name).write_bytes(f"{name} 2020 {{}}\n".encode())
    urls = ["hdfs:///cdx/a.cdx", *(f"s3://b/{name}" for name in ("one/a.cdx", "one/b.cdx", "two/a.cdx"))]
    absent = "s3://b/one/none.cdx"
    found = texts_of([*urls, absent, urls[1]])
    assert found.pop(absent) == "AbsentError: cannot be read (no such file)"
    assert found == {url: f"{url.removeprefix('s3://b/')} 2020 {{}}\n".encode() for url in urls[1:]} | {
        urls[0]: b"a 2020 {}\n"
    }
    gets = [sorted(line.split()[2:-1]) for line in asked() if line.startswith("fs -get")]
    assert gets == [[*urls[1:3], absent], [urls[3]], [absent]]
    assert list(tmp_path.glob(".inputs-*")) == []


def test_a_shared_directory_gets_whole_files(tmp_path: Path) -> None:
    shared = tmp_path / "a dir"
    shared.mkdir()
    for name in ("part", "shard"):
        (tmp_path / name).write_bytes(name.encode())
    Destination(shared.as_uri()).put(["part", "shard"])
    assert {path.name: path.read_bytes() for path in shared.iterdir()} == {"part": b"part", "shard": b"shard"}
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=r"^cdxmill: .*file/part: cannot be written"):
        Destination((tmp_path / "file").as_uri()).put(["part"])


def test_what_is_for_hdfs_goes_to_the_output_of_the_task(node: NameNode, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"part")
    destination = Destination("hdfs:///cluster")
    assert ("MKDIRS", "/out/_temporary/1") in [(op, path) for op, path, _ in node.seen]
    destination.put(["part"])
    assert {path: file.body for path, file in node.files.items()} == {"/out/_temporary/1/part": b"part"}
    node.refusals = [(403, "AccessControlException")]
    with pytest.raises(SystemExit, match=r"^cdxmill: hdfs:///out/_temporary/1: cannot be created: refused"):
        Destination("hdfs:///cluster")
    node.refusals = [(403, "AccessControlException")]
    with pytest.raises(
        SystemExit, match=r"^cdxmill: hdfs:///out/_temporary/1/part: cannot be written: refused"
    ):
        destination.put(["part"])


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("s3://b/cluster", "-put -f -d {} s3://b/cluster/"),
        ("s3a://b/cluster", "-put -f -d {} s3a://b/cluster/"),
        ("gs://b/cluster", "-put -f {} gs://b/out/"),
    ],
)
def test_an_object_of_s3_goes_to_its_place_at_once(
    url: str, words: str, asked: Callable[[], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("mapreduce_task_output_dir", "gs://b/out")
    (tmp_path / "home/bin/hadoop").write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\n')
    (tmp_path / "part").touch()
    Destination(url).put(["part"])
    assert asked()[-1] == f"fs {words.format((tmp_path / 'part').as_uri())}"


def test_a_local_output_of_a_task_is_not_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("mapreduce_task_output_dir", (tmp_path / "own").as_uri())
    (tmp_path / "part").write_bytes(b"part")
    Destination("viewfs://a/cluster").put(["part"])
    assert (tmp_path / "own/part").read_bytes() == b"part"
