"""Outputs at URLs carry the record of what they were made from: none is trusted by its name."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.cli.main import main
from cdxmill.commands.per_archive.task import OutputDirectory
from cdxmill.errors import StoppedError
from cdxmill.formats.own_records import OUTPUTS
from cdxmill.inputs.named import named_input
from cdxmill.outputs.existing import Rule
from cdxmill.outputs.record import OutputRecord, OutputRow
from cdxmill.outputs.settings import LineSettings
from cdxmill.running.resume import WorkDirectory
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.storage.location import join, locate
from cdxmill.storage.walk import files_below

from ..material.wacz_files import make_wacz
from .name_node import name_node
from .range_server import RangeServer

SOURCES = {"A": "iana.warc.gz", "B": "example.warc.gz"}
COMMANDS = {
    "index": ["index"],
    "recompress": ["recompress"],
    "scan": ["scan"],
    "scan to warc": ["scan", "--to", "warc.gz", "--where", "status=200"],
    "reindex": ["reindex", "--offsets", "tables"],
}
OTHERS = {
    "index": ["--records", "all"],
    "recompress": ["--level", "12"],
    "scan": ["--where", "status=404"],
    "scan to warc": ["--where", "status=404"],
}


@pytest.fixture
def archives(pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two archives of one name, their indexes, and tables of offsets, in the current directory."""
    monkeypatch.chdir(tmp_path)
    for name, source in SOURCES.items():
        Path(name).mkdir()
        shutil.copyfile(pywb_warcs / source, f"{name}/rec.warc.gz")
        os.utime(f"{name}/rec.warc.gz", (5, 5))
        run("index", "-o", f"cdx/{name}", f"{name}/rec.warc.gz")
    run("recompress", "--offsets", "-o", "tables", "A/rec.warc.gz")
    return tmp_path


def run(command: str, *args: str, status: int = 0) -> None:
    assert main([command, "-q", "-p", "1", *args]) == status


def given(command: str, name: str) -> str:
    return f"cdx/{name}/rec.cdx.gz" if command == "reindex" else f"{name}/rec.warc.gz"


def content(place: str) -> dict[str, bytes]:
    """All but the proofs of archives."""
    urls = [url for url in files_below(place).files if not url.endswith(".proof.json")]
    return {url.removeprefix(f"{place}/"): locate(url).read_bytes() for url in urls}


def put(url: str, body: bytes) -> None:
    """Write an object as another program does."""
    with locate(url).write_atomic() as file:
        file.write(body)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_is_that_of_one_archive_and_of_its_options(
    command: str, archives: Path, elsewhere: str, capfd: pytest.CaptureFixture[str]
) -> None:
    call = [*COMMANDS[command], "-o", elsewhere]
    run(*call, given(command, "A"))
    before = content(elsewhere)
    assert len(before) == 1
    capfd.readouterr()
    assert main([*call, given(command, "A")]) == 0
    assert "1 up to date" in capfd.readouterr().err
    for options in ((), ("--update",))[: 1 if command == "reindex" else 2]:
        run(*call, *options, given(command, "B"), status=2)
        assert f"rec.{'cdx' if 'index' in command else 'warc'}" in (told := capfd.readouterr().err)
        assert f"was not made from {given(command, 'B')}" in told
    if command in OTHERS:
        run(*call, *OTHERS[command], given(command, "A"), status=2)
        assert "was made with other options" in capfd.readouterr().err
    assert content(elsewhere) == before
    if command in OTHERS:
        run(*call, "--replace", given(command, "B"))
        assert content(elsewhere) != before
        run(*call, given(command, "B"))


@pytest.mark.parametrize("command", COMMANDS)
def test_an_object_of_somebody_else_is_never_an_output(
    command: str, archives: Path, elsewhere: str, capfd: pytest.CaptureFixture[str]
) -> None:
    call = [*COMMANDS[command], "-o", elsewhere, given(command, "A")]
    run(*call)
    ((name, _),) = content(elsewhere).items()
    put(join(elsewhere, name), b"precious")
    capfd.readouterr()
    run(*call, status=2)
    assert name in capfd.readouterr().err
    if command.startswith("scan"):
        run(*call, "--update")
        assert "kept, but it was changed, or cdxmill has no record of it" in capfd.readouterr().err
    elif command != "reindex":
        run(*call, "--update", status=2)
        assert "was not made from" in capfd.readouterr().err
    assert content(elsewhere) == {name: b"precious"}


@pytest.mark.parametrize("options", [(), ("--update",), ("--replace",)])
def test_a_file_that_has_the_name_of_a_list_of_failures_stays(
    options: tuple[str, ...], archives: Path, elsewhere: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):  # without and with an output
        put(join(elsewhere, "_rec.cdx.gz.failures"), b"precious")
        run("index", *options, "-o", elsewhere, "A/rec.warc.gz", status=2)
        assert "_rec.cdx.gz.failures: is not of cdxmill; move it away" in capfd.readouterr().err
        assert content(elsewhere)["_rec.cdx.gz.failures"] == b"precious"
        locate(join(elsewhere, "_rec.cdx.gz.failures")).remove()
        run("index", *options, "-o", elsewhere, "A/rec.warc.gz")


@pytest.mark.parametrize("command", ["index", "recompress"])
def test_an_output_of_an_older_version_is_kept_or_replaced_on_request(
    command: str, archives: Path, elsewhere: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Versions before this one wrote no record to URLs."""
    call = [command, "-o", elsewhere, "A/rec.warc.gz"]
    run(*call)
    before = content(elsewhere)
    for name, body in before.items():
        put(join(elsewhere, name), body)
    capfd.readouterr()
    run(*call, status=2)
    told = "was changed, or cdxmill has no record of it; use --update to keep finished outputs, --replace to"
    assert told in capfd.readouterr().err
    run(*call, "--update")
    assert "kept, but it was changed, or cdxmill has no record of it" in capfd.readouterr().err
    run(*call, "--replace")
    assert content(elsewhere) == before
    run(*call)


def test_archives_at_urls_that_change_are_noticed(
    archives: Path, elsewhere: str, server: RangeServer, capfd: pytest.CaptureFixture[str]
) -> None:
    """Their size is the same: only the time or the ETag differs."""
    body = Path("A/rec.warc.gz").read_bytes()
    served = server.add("/rec.warc.gz", body)
    put(join(elsewhere, "rec.warc.gz"), body)
    for url in (f"{server.url}/rec.warc.gz", join(elsewhere, "rec.warc.gz")):
        for number, place in enumerate((join(elsewhere, "out"), "out")):
            call = ["index", "-o", join(place, url.partition(":")[0]), url]
            run(*call)
            run(*call)
            if url.startswith("http"):
                served.etags = [f'"new {number}"'] * 2
            else:
                put(url, body[:9] + bytes([number]) + body[10:])  # the system, in the gzip header
            if not url.startswith("hdfs"):  # the times of the name node of the tests never change
                run(*call, status=2)
                assert f"was made from an earlier state of {url}" in capfd.readouterr().err
            run(*call, "--replace")


def test_an_archive_may_have_any_name(archives: Path, elsewhere: str) -> None:
    for number, directory in enumerate((Path("ü b%20\u2028\n\udcff"), Path(*["d" * 200] * 8))):
        directory.mkdir(parents=True)
        shutil.copyfile("A/rec.warc.gz", directory / "a.warc.gz")
        for _ in range(2):
            run("index", "-o", join(elsewhere, str(number)), os.fspath(directory / "a.warc.gz"))


def test_without_extended_attributes_hdfs_has_no_record(
    archives: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with name_node() as running:
        monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
        running.has_attributes = False
        call = ["index", "-o", "hdfs:///out", "A/rec.warc.gz"]
        run(*call)
        run(*call, status=2)
        assert "cdxmill has no record of it" in capfd.readouterr().err
        run(*call, "--update")


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("command", ["index", "recompress", "scan"])
def test_one_changed_byte_is_noticed_and_another_time_alone_is_not(
    command: str, archives: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    call = [command, "-o", "out", "A/rec.warc.gz"]
    run(*call)
    (output,) = (
        path for path in Path("out").iterdir() if path.name.startswith("rec") and path.suffix != ".json"
    )
    rows = Path("out", OUTPUTS).read_bytes().count(b"\n")
    for _ in range(2):
        os.utime(output, (7, 7))
        run(*call)
        assert Path("out", OUTPUTS).read_bytes().count(b"\n") == rows + 1, "it is read once"
    before = output.read_bytes()
    flip(output, len(before) // 2)
    run(*call, status=2)
    assert f"{output}: was changed, or " in capfd.readouterr().err
    output.write_bytes(before)
    run(*call)


@pytest.mark.parametrize("offset", [9, 200], ids=["in the gzip header", "in the first line"])
def test_an_index_beside_with_one_changed_byte_is_noticed(
    offset: int, archives: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    call = ["recompress", "--index", "-o", "out", "A/rec.warc.gz"]
    run(*call)
    index = Path("out/rec.warc.zst.cdx.gz")
    whole = index.read_bytes()
    flip(index, offset)
    run(*call, status=2)
    assert f"{index}: was changed, or " in capfd.readouterr().err
    run(*call, "--replace")
    assert index.read_bytes() == whole


def test_outputs_that_cannot_be_asked_for_stop_the_run(
    archives: Path, server: RangeServer, hurry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    server.add("/bucket/out/rec.cdx.gz", b"").statuses = [503] * 99
    names = {named_input("A/rec.warc.gz", "rec.warc.gz"): "rec.cdx.gz"}
    directory = OutputDirectory(locate("s3://bucket/out"), None, archives)
    with pytest.raises(StoppedError, match=r"out/rec.cdx.gz: did not answer \(503\) after 12 tries"):
        directory.plan(names, LineSettings(CaptureOptions(), "cdxj"), Rule.UPDATE)


@pytest.fixture
def client(elsewhere: str) -> Any:
    return boto3.client("s3", region_name="us-east-1")


def test_a_stamp_is_read_as_anybody_reads_it(archives: Path, elsewhere: str, client: Any) -> None:
    if elsewhere.startswith("hdfs"):
        return
    run("index", "-o", elsewhere, "A/rec.warc.gz")
    head = client.head_object(Bucket="elsewhere", Key="out/rec.cdx.gz")
    archive, settings, state, size, sha256 = head["Metadata"]["cdxmill"].split(" ")
    assert (archive, size) == (f"{archives}/A/rec.warc.gz", str(head["ContentLength"]))
    assert state == f"{Path('A/rec.warc.gz').stat().st_size}-5000000000"
    assert len(sha256) == 64
    assert gzip.decompress(locate(join(elsewhere, "rec.cdx.gz")).read_bytes())
    assert settings


def test_a_stamp_counts_for_an_object_of_its_size(elsewhere: str) -> None:
    """A program that changes a file in place keeps its attributes."""
    place, row = locate(join(elsewhere, "o")), OutputRow("", "/in/a", "settings", "9-tag", 4, "0f", 0)
    assert OutputRecord(None).made_from(place) is None
    for data, found in ((b"data", row), (b"other", None)):
        with place.write_atomic(stamp=row.stamp) as file:
            file.write(data)
        assert OutputRecord(None).made_from(place) == found
    with place.write_atomic() as file:
        file.write(b"data")
    assert OutputRecord(None).made_from(place) is None


def test_results_of_tasks_are_kept_at_a_url(elsewhere: str) -> None:
    place = locate(join(elsewhere, "C/.work"))
    WorkDirectory(place, "job").save("step-00001", {"a": 1})
    assert WorkDirectory(place, "job").load("step-00001") == {"a": 1}
    work = WorkDirectory(place, "another job")
    assert work.load("step-00001") is None
    work.save("step-00001", 2)
    work.remove()
    assert content(elsewhere) == {}


def test_indexes_of_a_wacz_can_be_read_at_a_url(elsewhere: str, archives: Path) -> None:
    """Their directory has the name of the WACZ, and is none: no path below it leads into one."""
    data = (archives / "A/rec.warc.gz").read_bytes()
    (archives / "x.wacz").write_bytes(make_wacz({"archive/a.warc.gz": data}))
    (archives / "list").write_text("x.wacz\n")
    for _ in "12":
        run("index", "--manifest", "list", "-o", elsewhere)
    run("index", "--manifest", "list", "-o", "here")
    assert content(elsewhere) == {
        "x.wacz/archive/a.cdx.gz": Path("here/x.wacz/archive/a.cdx.gz").read_bytes()
    }
    run("zipnum", "-s", "1", "-o", "C", f"{elsewhere}/")
