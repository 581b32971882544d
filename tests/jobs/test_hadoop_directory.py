"""jobs/launcher/hadoop_directory.py and hadoop_inputs.py: the messages of the hadoop command are interpreted correctly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdxmill.errors import StoppedError, UsageError
from cdxmill.storage.hadoop import hdfs, site
from tests.storage.name_node import name_node

URL = "hdfs:///clusters/c"
NO_RUNNER: Any = None
"""Inputs of this machine need no runner."""


@pytest.fixture
def hadoop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hadoop command that fails with the message in the file `says`, and records its arguments."""
    (tmp_path / "says").touch()
    script = tmp_path / "hadoop"
    script.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\ncat {tmp_path}/says >&2\nexit 1\n')
    script.chmod(0o755)
    monkeypatch.setattr(site, "_given", [str(script)])


def test_a_missing_directory_is_empty(hadoop: None, tmp_path: Path) -> None:
    from cdxmill.jobs.launcher.hadoop_directory import RemoteDirectory

    (tmp_path / "says").write_text(f"ls: `{URL}': No such file or directory\n")
    directory = RemoteDirectory(URL, True)
    assert (directory.names(), directory.files()) == ([], {})


def test_a_shared_directory_that_is_emptied_exists_afterwards(tmp_path: Path) -> None:
    """Tasks on other machines write to it. In HDFS, the first of them creates it."""
    from cdxmill.jobs.launcher.hadoop_directory import RemoteDirectory

    shared, new = tmp_path / "shared", tmp_path / "new"
    (shared / "sub").mkdir(parents=True)
    for name in ("a", "sub/b"):
        (shared / name).touch()
    RemoteDirectory(f"file://{shared}").empty(["a", "sub", "absent"])
    assert list(shared.iterdir()) == []
    RemoteDirectory(f"file://{new}").empty([])
    assert new.is_dir()
    RemoteDirectory(str(tmp_path / "plain")).empty([])
    assert not (tmp_path / "plain").exists()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "ls: Call From a/1.2.3.4 to b:9000 failed: Connection refused; For more details see:  x",
            "refused); correct",
        ),
        (
            "WARN x\nls: Permission denied: user=a, access=READ",
            "(ls: Permission denied: user=a, access=READ)",
        ),
        (
            "ls: `s3a://b/x': NoSuchBucket: no bucket (Service: S3, Status Code: 404)",
            "no bucket); correct this",
        ),
        (
            "ls: DestHost:destPort a:9000 , LocalHost:localPort b/1.2.3.4:0. Failed on local exception: java.io.IOException:"
            " org.apache.hadoop.security.AccessControlException: Client cannot authenticate via:[TOKEN, KERBEROS]",
            "cannot be listed: there is no valid Kerberos ticket; run kinit",
        ),
    ],
)
def test_a_directory_that_cannot_be_listed_is_not_treated_as_empty(
    hadoop: None, tmp_path: Path, said: str, told: str
) -> None:
    """A finished cluster would be deleted."""
    from cdxmill.jobs.launcher.hadoop_directory import RemoteDirectory
    from cdxmill.jobs.launcher.zipnum_on_hadoop import clear

    (tmp_path / "says").write_text(said + "\n")
    with pytest.raises(StoppedError) as caught:
        clear(RemoteDirectory(URL, True), replace=False)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (tmp_path / "asked").read_text() == f"fs -stat %b %Y %F %n {URL}/*\n"


def test_inputs_of_this_machine_are_existing_cdx_files(tmp_path: Path) -> None:
    from cdxmill.jobs.launcher.hadoop_inputs import cdx_inputs

    (tmp_path / "below").mkdir()
    for name in ("a.cdx.gz", "b.cdxj", "below/c.cdx", "notes.txt", ".cdx.swp"):
        (tmp_path / name).write_bytes(b"a 2020 {}\n")
    files = [str(tmp_path / name) for name in ("a.cdx.gz", "b.cdxj", "below/c.cdx")]
    assert cdx_inputs([str(tmp_path)], NO_RUNNER) == dict.fromkeys(files, 10)
    assert cdx_inputs([f"{tmp_path}/*.cdx*"], NO_RUNNER) == dict.fromkeys(files[:2], 10)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.cdx").touch()
    for absent, reason in (
        ("empty", "no CDX files found in"),
        ("x.cdx", "no such file"),
        ("*.x", "no CDX files found in"),
        ("empty.cdx", "the file is empty; rebuild this index"),
    ):
        with pytest.raises(UsageError, match=reason):
            cdx_inputs([str(tmp_path / absent)], NO_RUNNER)


@pytest.mark.parametrize(
    "name", ["cdx-00000.gz", "part-00002", "cluster.idx", "splits.txt", "cluster.json", "x"]
)
def test_only_what_a_failed_job_left_is_deleted(name: str, tmp_path: Path) -> None:
    """Shards without a report are not of a job of cdxmill."""
    from cdxmill.jobs.launcher.hadoop_directory import RemoteDirectory
    from cdxmill.jobs.launcher.zipnum_on_hadoop import clear

    directory = tmp_path / "C"
    directory.mkdir()
    (directory / name).write_bytes(b"mine")
    with pytest.raises(UsageError, match="holds "):
        clear(RemoteDirectory(directory.as_uri()), replace=False)
    assert (directory / name).read_bytes() == b"mine"
    (directory / name).unlink()
    for left in ("_report-00000", "cdx-00000.gz", "part-00000", "cluster.idx", "splits.txt"):
        (directory / left).write_bytes(b"of a job that failed")
    clear(RemoteDirectory(directory.as_uri()), replace=False)
    assert list(directory.iterdir()) == []


def test_a_finished_cluster_is_replaced_only_if_that_is_asked_for(tmp_path: Path) -> None:
    from cdxmill.jobs.launcher.hadoop_directory import RemoteDirectory
    from cdxmill.jobs.launcher.zipnum_on_hadoop import clear

    directory = tmp_path / "C"
    directory.mkdir()
    names = ("cdx-00000.gz", "part-00000", "cluster.idx", "cluster.json", "splits.txt")
    for name in names:
        (directory / name).write_bytes(b"of a finished cluster")
    with pytest.raises(UsageError, match="use --replace"):
        clear(RemoteDirectory(directory.as_uri()), replace=False)
    (directory / "notes.txt").write_bytes(b"mine")
    with pytest.raises(UsageError, match="holds other files"):
        clear(RemoteDirectory(directory.as_uri()), replace=True)
    assert len(list(directory.iterdir())) == len(names) + 1
    (directory / "notes.txt").unlink()
    clear(RemoteDirectory(directory.as_uri()), replace=True)
    assert list(directory.iterdir()) == []


def test_a_directory_that_cannot_be_written_is_found_before_a_job(hadoop: None, tmp_path: Path) -> None:
    from cdxmill.jobs.launcher.hadoop_directory import RemoteDirectory

    (tmp_path / "says").write_text("mkdir: Permission denied: user=a, access=WRITE\n")
    with pytest.raises(StoppedError, match="Permission denied: user=a, access=WRITE"):
        RemoteDirectory("s3://b/c", True).check_writable()
    RemoteDirectory((tmp_path / "new").as_uri()).check_writable()
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize(
    "place", ["hdfs:///new", "hdfs:///new/below/deep", "hdfs://names:8020/new", "hdfs:///crawl"]
)
def test_a_directory_of_hdfs_is_tried_where_it_will_be_and_not_created(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher.hadoop_directory import RemoteDirectory

    hdfs._client.cache_clear()
    with name_node() as server:
        monkeypatch.setenv("CDXMILL_WEBHDFS", server.address)
        server.put("/crawl/a", b"")
        RemoteDirectory(place).check_writable()
        assert server.files.keys() == {"/crawl/a"}
        (written,) = {path.rpartition("/")[0] for op, path, _ in server.seen if op == "CREATE"}
        assert written == ("/crawl" if "crawl" in place else "")
        server.refusals = [(403, "NSQuotaExceededException")] * 9
        with pytest.raises(StoppedError, match=f"^{place}: (no file can|cannot) be written"):
            RemoteDirectory(place).check_writable()


def test_mrjob_reaches_hdfs_by_the_storage_and_a_private_file_stays_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that only its owner may read has keys in it."""
    from cdxmill.jobs.launcher.hadoop_directory import StorageFilesystem

    hdfs._client.cache_clear()
    files = StorageFilesystem(["false"], "")
    with name_node() as server:
        monkeypatch.setenv("CDXMILL_WEBHDFS", server.address)
        for mode, permission in (0o600, {"permission": "600"}), (0o644, {}):
            path = tmp_path / f"{mode:o}"
            path.write_bytes(b"of the job")
            path.chmod(mode)
            files.put(str(path), f"hdfs:///job/{mode:o}")
            asked = next(query for op, _, query in reversed(server.seen) if op == "CREATE")
            assert {key: asked[key] for key in asked.keys() & {"permission"}} == permission
        assert sorted(files.ls("hdfs:///job")) == ["hdfs:///job/600", "hdfs:///job/644"]
        assert b"".join(files.read("hdfs:///job/600")) == b"of the job"
        files.mkdir("hdfs:///new")
        assert ("MKDIRS", "/new") in [(op, path) for op, path, _ in server.seen]
        files.rm("hdfs:///job")
        assert not files.exists("hdfs:///job/600")
        assert server.files == {}
        for call in files.exists, files.rm, lambda url: list(files.ls(url)):
            server.refusals = [(403, "AccessControlException")]
            with pytest.raises(OSError, match="hdfs:///job"):
                call("hdfs:///job")


def test_a_private_file_stays_private_where_only_the_hadoop_command_reaches(
    hadoop: None, tmp_path: Path
) -> None:
    from cdxmill.jobs.launcher.hadoop_directory import StorageFilesystem

    for mode in (0o600, 0o644):
        path = tmp_path / f"{mode:o}"
        path.write_bytes(b"keys")
        path.chmod(mode)
        with pytest.raises(OSError, match=f"s3://b/{mode:o}"):
            StorageFilesystem(["false"], "").put(str(path), f"s3://b/{mode:o}")
    first, second = (tmp_path / "asked").read_text().splitlines()
    assert first == "fs -D fs.permissions.umask-mode=077 -put -f - s3://b/600"
    assert second == "fs -put -f - s3://b/644"


@pytest.mark.parametrize(
    ("sizes", "most", "groups"),
    [
        ({}, 5, []),
        ({"a": 0, "b": 0}, 5, [["a", "b"]]),
        ({"a": 1, "b": 1}, 0, [["a"], ["b"]]),
        ({"a": 2, "b": 1, "c": 1}, 2, [["a"], ["b", "c"]]),
        ({"a": 2, "b": 1, "c": 1}, 4, [["a", "b", "c"]]),
        ({"a": 2, "b": 1, "c": 1}, 3, [["a"], ["b", "c"]]),
        ({"a": 3, "b": 3, "c": 2, "d": 1}, 5, [["a", "c"], ["b", "d"]]),
        ({"b": 5, "a": 1}, 3, [["b"], ["a"]]),
        ({"a": 1, "b": 2, "c": 3, "d": 3}, 5, [["b", "c"], ["a", "d"]]),
    ],
)
def test_each_input_is_in_one_group_of_about_the_size(
    sizes: dict[str, int], most: int, groups: list[list[str]]
) -> None:
    from cdxmill.jobs.launcher.hadoop_inputs import group_inputs

    assert group_inputs(sizes, most) == groups
