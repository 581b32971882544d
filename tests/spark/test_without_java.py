"""What the driver asks of Spark, and what nodes do, in one process: outputs, failures and messages are those of the local engine."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from cdxmill.cli.main import main
from cdxmill.commands.clusters import zipnum as zipnum_command
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.commands.per_archive.recompress_elsewhere import RecompressWork
from cdxmill.commands.scanning.options import ListPlace
from cdxmill.errors import StoppedError, UsageError
from cdxmill.formats.clusters.split_points import format_boundaries
from cdxmill.running.failures import Failures
from cdxmill.spark import engine, scripts
from cdxmill.spark.engine import Shuffle
from cdxmill.spark.jobs import Maker
from cdxmill.spark.tasks import ShardWork, join_parts
from tests.material.cdx_files import many_lines, write_gzip
from tests.spark.conftest import hashes
from tests.spark.here import Here

LINES = many_lines(600)
POINTS = (sorted(LINES)[200], sorted(LINES)[400])
OPTIONS = ZipnumOptions(shards=3, points=POINTS, location="/x", quiet=True, block_lines=30)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """An engine in place of each that is made. The inputs are in the working directory: a CDX file, one truncated, archives."""
    made = Here()
    for module in engine, scripts:
        monkeypatch.setattr(module, "Engine", lambda *_, **__: made)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ListPlace, "base", "")
    write_gzip(Path("a.cdx.gz"), LINES, 60)
    Path("types").write_text("text/html\n")
    Path("six.cdx").write_bytes(b"com,a)/ 2020 http://a.com/ 12 0 a.warc.gz\n")
    Path("cut.cdx.gz").write_bytes(Path("a.cdx.gz").read_bytes()[:-20])
    return made


class Ran(NamedTuple):
    """The status of a command, what it has written, and what it has said without its own output's name."""

    status: int
    files: dict[str, str]
    said: list[str]


@pytest.fixture
def ran(capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(output: str, *words: str) -> Ran:
        capfd.readouterr()
        status = main([*words, "-q", "-o", output])
        said = capfd.readouterr().err.replace(output, "OUT").splitlines()
        place = Path(output)
        files = {"": place.read_text()} if place.is_file() else hashes(place) if place.exists() else {}
        return Ran(status, files, sorted(said))

    return run


COMMANDS = {
    "index": "index warcs",
    "index of a WACZ": "index warcs bad.wacz",
    "recompress": "recompress warcs",
    "scan": "scan warcs --where mime@types --extract url,offset --to jsonl",
    "scan of one archive": "scan warcs/cut.warc.gz --extract url,offset --to jsonl",
    "recompress of one archive": "recompress warcs/cut.warc.gz",
    "count": "count tags warcs",
    "zipnum": "zipnum -s 3 --location /x --numlines 30 a.cdx.gz cut.cdx.gz",
    "zipnum of another format": "zipnum -s 2 --location /x --convert six.cdx",
    "export": "export a.cdx.gz --to parquet",
    "export of what is truncated": "export cut.cdx.gz --to parquet",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_does_the_same_on_other_machines(
    name: str, here: Here, warcs: Path, ran: Callable[..., Ran]
) -> None:
    """They have another working directory, and messages have the names that the user gave."""
    Path("bad.wacz").write_bytes(b"PK")
    words = COMMANDS[name].split()
    local, far = ran("local", *words), ran("far", *words, "--engine", "spark")
    assert far == local
    assert local.files or "truncated" in name
    is_sound = name in ("export", "zipnum of another format")
    assert (local.status == 0) == is_sound, "each other one has something that is corrupt"
    assert here.steps or here.sent


@pytest.mark.parametrize(
    "words", ["index", "recompress", "scan --extract url --to jsonl"], ids=["index", "recompress", "scan"]
)
def test_a_second_run_has_nothing_to_do(words: str, here: Here, warcs: Path, ran: Callable[..., Ran]) -> None:
    given = (*words.split(), "warcs/iana.warc.gz", "--engine", "spark")
    first = ran("far", *given)
    assert (first.status, len(here.sent)) == (0, 1)
    again = ran("far", *given, *(["--update"] if words != "recompress" else []))
    assert again == first
    assert len(here.sent) == 1


def test_a_node_with_another_version_of_the_compressor_writes_nothing(
    here: Here, warcs: Path, ran: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Archives would differ from those of the machine where the run was started."""
    older = classmethod(lambda cls, options: cls(options, "zstd 0.1"))
    monkeypatch.setattr(RecompressWork, "of", older)
    done = ran("far", "recompress", "warcs", "--engine", "spark")
    assert done.status == 3
    assert any("this run was started with zstd 0.1; install the same version" in line for line in done.said)
    assert not [name for name in done.files if name.endswith((".gz", ".zst"))]
    assert here.sent


def build(here: Here, place: str) -> list[frozenset[int]]:
    """The shards that each run of the tasks had to write."""
    failures = Failures(printed=False)
    build_cluster(["a.cdx.gz"], place, replace(OPTIONS, make=Maker(here), is_far=True), failures)
    return [step.shared.wanted for step in here.steps]


def damage(shard: Path, noted: Path) -> dict[str, Callable[[], object]]:
    """What an earlier run may have left of a shard."""
    entry = json.loads(noted.read_bytes())
    part = shard.with_name("part-00001")
    return {
        "finished": lambda: None,
        "no shard": shard.unlink,
        "another size": lambda: shard.write_bytes(shard.read_bytes()[:-1]),
        "no part": part.unlink,
        "no note": noted.unlink,
        "a note that is no JSON": lambda: noted.write_bytes(b"{"),
        "a note of another version": lambda: noted.write_text(json.dumps({**entry, "new": 1})),
    }


@pytest.mark.parametrize(
    "left",
    [
        "finished",
        "no shard",
        "another size",
        "no part",
        "no note",
        "a note that is no JSON",
        "a note of another version",
    ],
)
def test_only_shards_that_are_not_finished_are_written_again(
    left: str, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(zipnum_command, "write_cluster_files", interrupt)
        with pytest.raises(KeyboardInterrupt):
            build(here, "c")
    (own,) = Path("c").glob(".run-*")
    damage(own / "cdx-00001.gz", own / ".work/shard-00001.json")[left]()
    assert build(here, "c")[1] == (set() if left == "finished" else {1})
    build_cluster(["a.cdx.gz"], "local", OPTIONS, Failures(printed=False))
    assert hashes("c") == hashes("local")


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


class Loses(Here):
    """A part of the results is lost, or all that was written."""

    def __init__(self, lost: slice, *, removes: bool = False) -> None:
        super().__init__()
        self._lost, self._removes = lost, removes

    def shuffle(self, step: Shuffle) -> list[object]:
        found = super().shuffle(step)
        if self._removes:
            shutil.rmtree(step.shared.directory)
        del found[self._lost]
        return found


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        (slice(0, 1), "only 2 of 3 shards were written; run it again"),
        (slice(3, 4), "only 3 of 3 shards were written; run it again"),
    ],
    ids=["a shard", "the report"],
)
def test_a_result_that_is_lost_stops_the_run(lost: slice, told: str, here: Here) -> None:
    with pytest.raises(StoppedError, match=told):
        build(Loses(lost), "c")
    assert not Path("c/cluster.json").exists()


def test_shards_that_only_the_nodes_have_stop_the_run(here: Here) -> None:
    with pytest.raises(StoppedError, match="are not there; use a directory that all machines share"):
        build(Loses(slice(0, 0), removes=True), "c")


def test_a_node_with_another_compressor_writes_no_shard(tmp_path: Path) -> None:
    version = OPTIONS.compressor.version()
    work = ShardWork(str(tmp_path), list(POINTS), frozenset({0, 2}), OPTIONS.compressor, "zlib 0.1", 30, "")
    with pytest.raises(StoppedError, match=f"a node has {re.escape(version)}, the driver zlib 0.1: install"):
        join_parts(work, 0, iter([]))
    assert join_parts(work, 1, iter([])) is None, "it is not wanted"
    assert list(tmp_path.iterdir()) == []


OF_TABLES = ("--output_format=x", "--output_compression=gzip", "--output_option=a=b", "--log_level=INFO")
"""Options of cc-pyspark that are accepted and not used."""


def script(*words: str) -> int:
    return scripts.zipnum([*words, "--output_base_url=c", *OF_TABLES, "--spark-profiler"])


@pytest.mark.parametrize("name", ["b.json", "b.TXT", "b.SEQ", "b.txt", "b.seq"])
def test_the_file_of_boundaries_is_written_and_then_read(
    name: str, here: Here, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = [f"--partition_boundaries_file=file:{tmp_path}/{name}", "--location=/x", "a.cdx.gz"]
    assert script("--num_output_partitions=3", *asked) == 0
    said = capfd.readouterr().err
    assert f"file://{tmp_path}/{name}: 2 split points, from a sample\n" in said
    assert re.search(r"^c: .*600 lines", said, re.M), said
    assert json.loads(Path("c/cluster.json").read_bytes())["numlines"] == 3000
    (step,) = here.steps
    assert "/c/.run-" in step.shared.directory, "tasks of a killed run may still write to another one"
    kept = {path.name: path.read_bytes() for path in tmp_path.glob("b.*")}
    assert kept.keys() == (
        {name} if name == "b.json" else {name, "b.seq" if name.lower() == "b.txt" else "b.txt"}
    )
    first, here.sent[:] = hashes("c"), []
    for more in (), ("--num_output_partitions=300",), ("--num_output_partitions=3",):
        assert script("--replace", "-q", *more, *asked) == 0
    assert (hashes("c"), here.sent) == (first, [])
    assert capfd.readouterr().err == ""
    for number in (2, 4, 299):
        with pytest.raises(
            UsageError, match=f"--num_output_partitions {number} does not match .* 3 shards; omit"
        ):
            script(f"--num_output_partitions={number}", *asked)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("b.*")} == kept


def test_what_is_wrong_with_boundaries_and_inputs_is_reported(here: Here) -> None:
    asked = "--partition_boundaries_file=b.json"
    Path("b.json").write_text("{}")
    with pytest.raises(UsageError, match=r"^b\.json: is not"):
        script(asked, "a.cdx.gz")
    Path("b.json").unlink()
    with pytest.raises(UsageError, match="no CDX files found"):
        script(asked, "none/*.cdx.gz")
    with pytest.raises(UsageError, match="is an input"):
        script("--partition_boundaries_file=a.cdx.gz.json", "a.cdx.gz,a.cdx.gz.json")
    with pytest.raises(UsageError, match="must have the same format"):
        script(asked, "a.cdx.gz,six.cdx")
    for output, boundaries in ("http://localhost:1/c", "b.json"), ("c", "a.cdx.gz/b.json"):
        words = [f"--output_base_url={output}", f"--partition_boundaries_file={boundaries}"]
        with pytest.raises(UsageError, match=r"^(http://localhost:1/c|a\.cdx\.gz)"):
            scripts.zipnum([*words, "a.cdx.gz"])
    assert here.steps == here.sent == []
    assert not Path("b.json").exists()


def test_inputs_start_from_their_base(here: Here, tmp_path: Path) -> None:
    Path("b.json").write_bytes(format_boundaries(POINTS))
    words = ["--partition_boundaries_file=b.json", f"--input_base_url=file:{tmp_path}", "-q", "--location=/x"]
    assert script(*words, "--num_lines=30", "a.cdx.gz") == 0
    build_cluster(["a.cdx.gz"], "local", OPTIONS, Failures(printed=False))
    assert hashes("c") == hashes("local")


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (UsageError("no input"), 2, "no input"),
        (StoppedError("disk"), 3, "disk"),
        (OSError("network"), 3, "network"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=["usage", "stopped", "network", "interrupted"],
)
def test_how_a_script_ends_is_its_exit_status(
    error: BaseException, status: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_: list[str]) -> int:
        raise error

    assert scripts._status(fails) == status
    assert capsys.readouterr().err.endswith(f"{text}\n")
    assert scripts._status(lambda _: 1) == 1


def test_the_index_script_writes_the_files_of_the_command(
    here: Here, warcs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Archives of a crawl go to the paths of its index. A second run keeps what is complete."""
    below = "crawl-data/C/segments/1/warc"
    crawl = Path("far", below)
    crawl.parent.mkdir(parents=True)
    warcs.rename(crawl)
    Path("list").write_text("".join(f"{below}/{name}\n" for name in ("iana.warc.gz", "cut.warc.gz")))
    assert main(["index", "-q", "-o", "ours", "--root", "far", "--manifest", "list"]) == 1
    words = [f"--input_base_url=file:{tmp_path}/far", f"--output_base_url=file:{tmp_path}/out", "list"]
    capfd.readouterr()
    assert scripts.index(words) == 1
    said = capfd.readouterr().err
    assert f"listed in {tmp_path}/out/failures.tsv; the rest is indexed" in said
    assert f"{crawl}/cut.warc.gz@" in said
    assert hashes("out/cc-index/cdx/C/segments/1/warc") == hashes(Path("ours") / below)
    for more, done in ([], ["cut"]), (["--update"], ["cut"]), (["--replace"], ["cut", "iana"]):
        here.sent.clear()
        assert scripts.index(["-q", *more, *words]) == 1
        names = sorted(task.archive.path.rpartition("/")[2] for task in here.sent)
        assert names == [f"{name}.warc.gz" for name in done]
    assert "indexed" not in capfd.readouterr().err
    whole = (crawl / "iana.warc.gz").read_bytes()
    (crawl / "iana.warc.gz").write_bytes(whole * 2)
    with pytest.raises(UsageError, match=r"iana\.cdx\.gz: was made from an earlier state of "):
        scripts.index(["-q", *words])
    here.sent.clear()
    assert scripts.index(["-q", "--skip-existing", *words]) == 1
    assert {task.archive.path.rpartition("/")[2] for task in here.sent} == {"cut.warc.gz", "iana.warc.gz"}
