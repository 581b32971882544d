"""What `serve` writes for pywb and says to open, and how it starts and ends its server, without pywb."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from cdxmill.commands.clusters import serve as serving_command
from cdxmill.commands.clusters.serve import (
    _LOADERS,
    _RESOLVER,
    addresses,
    find_wayback,
    pywb_config,
    serve,
    write_config,
)
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.commands.collections.add import add
from cdxmill.errors import StoppedError, UsageError
from cdxmill.options.clusters import Serving
from cdxmill.options.collections import Adding
from cdxmill.running.failures import Failures
from cdxmill.running.listening import bound

from ..material.cdx_files import write_plain
from ..material.clock import Clock

PAGE = b'com,a)/ 2020 {"url": "http://a.com/", "mime": "text/html", "status": "200"}'


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """C, with an archives.tsv, in the current directory."""
    monkeypatch.chdir(tmp_path)
    write_plain(Path("a.cdxj"), [PAGE])
    build_cluster(["a.cdxj"], "C", ZipnumOptions(shards=1, quiet=True), Failures())
    Path("C/archives.tsv").write_text("a.warc.gz\t/warcs/a.warc.gz\n")
    return Path("C").absolute()


def collection(**options: Any) -> Any:
    """The collection in the configuration; in place of the resolver its arguments after pywb's loaders."""
    text = pywb_config(Serving(**{"cluster": "C", **options}))
    assert text.startswith(
        '# Written by cdxmill serve for the pywb beside it: wayback -d DIRECTORY\n{\n  "enable'
    )
    assert text.endswith("}\n")
    found = yaml.safe_load(text.replace(f"{_RESOLVER} [{_LOADERS}, ", "["))
    assert set(found) == {"enable_auto_colls", "collections"}
    assert found["enable_auto_colls"] is False
    return found["collections"]["web"]


def test_shards_beside_the_index_are_read_there(cluster: Path) -> None:
    place = {"match": "^.*", "replace": f"{cluster}/"}
    assert collection() == {
        "index": {"type": "zipnum", "path": f"{cluster}/cluster.idx", "shard_index_loc": place},
        "metadata": {"title": "C"},
        "archive_paths": [[str(cluster), None]],
    }
    cluster.rename(cluster.with_name("D\\1"))
    found = collection(cluster="D\\1")["index"]["shard_index_loc"]["replace"]
    assert found == f"{cluster.parent}/D\\\\1/", "a regular expression is replaced"


@pytest.mark.parametrize(
    ("name", "loc"), [("cluster.idx", False), ("cluster.summary", False), ("all.idx", False), ("x.idx", True)]
)
def test_shards_elsewhere_are_those_of_the_locations(name: str, loc: bool, cluster: Path) -> None:
    (cluster / "cdx-00000.gz").rename("cdx-00000.gz")
    (cluster / "cluster.loc").write_text(f"cdx-00000.gz\t{cluster.parent}/cdx-00000.gz\n")
    (cluster / "cluster.summary").unlink()
    (cluster / "cluster.idx").rename(cluster / name)
    wanted = {"type": "zipnum", "path": f"{cluster}/{name}"}
    wanted |= {"shard_index_loc": f"{cluster}/cluster.loc"} if loc else {}
    assert collection(cluster=f"C/{name}")["index"] == wanted


def test_overlays_are_indexes_of_their_own(cluster: Path) -> None:
    write_plain(Path("new.cdxj"), [b"com,b)/ 2021 {}"])
    add(Adding("C", ["new.cdxj"], cdx=True, mode="overlay", processes=1), Failures())
    (overlay,) = cluster.glob("overlay-*.gz")
    found = collection()
    assert "index" not in found
    place = {"match": "^.*", "replace": f"{cluster}/"}
    assert found["index_group"] == {
        "shards": {"type": "zipnum", "path": f"{cluster}/cluster.idx", "shard_index_loc": place},
        overlay.name: {"type": "zipnum", "path": str(overlay.with_suffix(".idx")), "shard_index_loc": place},
    }


@pytest.mark.parametrize(
    ("title", "found"), [(None, "C"), ("", "C"), ("A: 'b' #\u2028\x7f", "A: 'b' #\u2028\x7f")]
)
def test_the_title_is_that_which_is_given(title: str | None, found: str, cluster: Path) -> None:
    assert collection(title=title)["metadata"] == {"title": found}


def test_a_special_character_is_escaped_for_yaml(cluster: Path) -> None:
    text = pywb_config(Serving(cluster="C", title="\x7f\x85\u2029\ufeff\uffff\xa0\xe4"))
    assert '"\\u007f\\u0085\\u2029\\ufeff\\uffff\xa0\xe4"' in text
    with pytest.raises(UsageError) as raised:
        pywb_config(Serving(cluster="C", title="a\udcffb"))
    assert str(raised.value) == '"title": "a\udcffb": pywb cannot read a path that is not UTF-8; rename it'


@pytest.mark.parametrize(
    ("archives", "found"),
    [(None, None), (".", "."), ("C/archives.tsv", "C/archives.tsv"), ("https://host/w/", "https://host/w")],
)
def test_archives_are_where_the_user_says_or_archives_tsv(
    archives: str | None, found: str | None, cluster: Path
) -> None:
    if found is not None and "://" not in found:
        found = str(Path(found).absolute())
    assert collection(archives=archives)["archive_paths"] == [[str(cluster), found]]


@pytest.mark.parametrize(
    ("cluster_named", "archives", "reason"),
    [
        ("C", None, "{C}: has no archives.tsv; use --archives LOCATION to say where the archives are"),
        ("C", "absent", "absent: neither a directory of archives, nor a WACZ, nor a path index"),
        (
            "s3://b/C",
            ".",
            "s3://b/C: pywb reads the index of a local cluster only; download the cluster, or from s3",
        ),
        ("absent", ".", "absent: not a ZipNum cluster (no such file or directory); check the path"),
    ],
)
def test_what_pywb_cannot_read_is_wrong_usage(
    cluster_named: str, archives: str | None, reason: str, cluster: Path
) -> None:
    (cluster / "archives.tsv").unlink()
    with pytest.raises(UsageError) as raised:
        pywb_config(Serving(cluster=cluster_named, archives=archives))
    assert str(raised.value).startswith(reason.format(C=cluster))


def test_a_configuration_is_written_again_only_if_it_is_the_same(cluster: Path) -> None:
    asked, path = Serving(cluster="C"), Path("conf/sub/config.yaml")
    wanted = pywb_config(asked)
    assert write_config(asked, "conf/sub") == path
    assert path.read_text() == wanted
    assert write_config(asked, Path("conf/sub")) == path
    path.write_text("mine")
    with pytest.raises(UsageError) as raised:
        write_config(asked, "conf/sub")
    assert str(raised.value) == f"{path}: already exists; use --replace, or choose another directory"
    assert path.read_text() == "mine"
    write_config(Serving(cluster="C", replace=True), "conf/sub")
    assert path.read_text() == wanted
    path.write_text("")
    write_config(asked, "conf/sub")
    assert path.read_text() == wanted


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("s3://bucket/x", "not a local directory, as pywb needs for its configuration; use a path"),
        ("http://127.0.0.1:1/x", "not a local directory, as pywb needs for its configuration; use a path"),
        ("file://elsewhere/x", "elsewhere"),
    ],
)
def test_a_configuration_is_written_to_a_local_directory(place: str, reason: str, cluster: Path) -> None:
    with pytest.raises(UsageError, match=reason):
        write_config(Serving(cluster="absent"), place)


def test_wayback_is_the_one_beside_this_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    (tmp_path / "other").mkdir()
    for place in (tmp_path / "other", tmp_path):
        with pytest.raises(
            UsageError, match=r"pywb is not installed with cdxmill \(no command wayback\); pip"
        ):
            find_wayback()
        (place / "wayback").write_text("#!/bin/sh\n")
        (place / "wayback").chmod(0o755)
    assert find_wayback() == str(tmp_path / "wayback")


SITE = "http://h:1"


def test_a_page_to_open_is_named_if_there_is_one(cluster: Path) -> None:
    search = f"or {SITE}/web/ to search; Ctrl-C stops the server"
    assert addresses("C", SITE) == [f"open {SITE}/web/http://a.com/", search]
    (cluster / "cdx-00000.gz").write_bytes(b"\x1f\x8bdamaged")
    error, line = addresses("C", SITE)
    assert "cdx-00000.gz" in error
    assert line == f"open {SITE}/web/"
    write_plain(Path("empty.cdxj"), [b""])
    build_cluster(["empty.cdxj"], "E", ZipnumOptions(shards=1, quiet=True), Failures())
    assert addresses("E", SITE) == [f"open {SITE}/web/ (the cluster has no captures)"]


class Ended:
    """A server that has ended."""

    def __init__(self, status: int) -> None:
        self.returncode = status

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, seconds: float | None = None) -> int:
        return self.returncode


@pytest.mark.parametrize(("status", "returned"), [(0, 0), (5, 5), (-9, 137), (-signal.SIGTERM, 143), (1, 1)])
def test_the_status_is_that_of_the_server(
    status: int, returned: int, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {"said": []}

    @contextmanager
    def running(command: list[str]) -> Iterator[Ended]:
        seen["command"], seen["config"] = command, Path(command[2], "config.yaml").read_text("utf-8")
        yield Ended(status)

    monkeypatch.setattr(serving_command, "_running", running)
    monkeypatch.setattr(serving_command, "find_wayback", lambda: "/x/wayback")
    monkeypatch.setattr(serving_command, "say", seen["said"].append)
    monkeypatch.setattr(
        serving_command, "_wait_until_up", lambda process, address, port: seen.update(up=(address, port))
    )
    asked = Serving(cluster="C", port=0, title="\xe4")
    assert serve(asked) == returned
    name, _, directory, *rest, port = seen["command"]
    assert (name, rest) == ("/x/wayback", ["-b", "127.0.0.1", "-p"])
    assert seen["up"] == ("127.0.0.1", int(port))
    assert int(port) > 0
    assert seen["config"] == pywb_config(asked)
    assert seen["said"] == addresses("C", f"http://127.0.0.1:{port}")
    assert not Path(directory).exists()


def test_a_server_that_ends_before_it_listens_did_not_start() -> None:
    with closing(bound("127.0.0.1", 0)) as of_somebody:
        of_somebody.listen()
        port = of_somebody.getsockname()[1]
        with pytest.raises(StoppedError) as raised:
            serving_command._wait_until_up(Ended(5), "127.0.0.1", port)  # type: ignore[arg-type]
    assert str(raised.value) == "wayback did not start (exit status 5); see its messages above"


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_a_server_is_up_as_soon_as_it_listens(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_command, "time", Clock())

    class Running(Ended):
        def poll(self) -> None:
            return None

    try:
        held = bound("127.0.0.1" if address == "::" else address, 0)
    except UsageError:  # this machine has no IPv6
        return
    with closing(held):
        held.listen()
        serving_command._wait_until_up(Running(0), address, held.getsockname()[1])  # type: ignore[arg-type]


class Program(Ended):
    """A program that runs until it is told to end, or, if it hangs, until it is killed."""

    def __init__(self, calls: list[str], ends: str) -> None:
        super().__init__(0)
        self.calls, self.ends = calls, ends

    def poll(self) -> int | None:
        return 0 if self.ends == "at once" else None

    def terminate(self) -> None:
        self.calls.append("terminate")

    def kill(self) -> None:
        self.calls.append("kill")

    def wait(self, seconds: float | None = None) -> int:
        self.calls.append(f"wait {seconds}")
        if seconds is not None and self.ends == "never":
            raise subprocess.TimeoutExpired("wayback", seconds)
        return 0


@pytest.mark.parametrize(
    ("ends", "calls"),
    [
        ("at once", []),
        ("when it is told to", ["terminate", "wait 10"]),
        ("never", ["terminate", "wait 10", "kill", "wait None"]),
    ],
)
@pytest.mark.parametrize("fails", [True, False])
def test_a_server_that_still_runs_is_ended(
    fails: bool, ends: str, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, stdin: Program(seen, ends))
    expected = pytest.raises(StoppedError) if fails else nullcontext()
    with expected, serving_command._running(["wayback"]):
        assert seen == []
        if fails:
            raise StoppedError("it did not start")
    assert seen == calls
