"""jobs/launcher/zipnum_on_hadoop.py: what a directory may hold, the step for Hadoop, and the order in which files are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdxmill.cluster.switch import MARK
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.errors import UsageError
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.jobs.nodes.run_task import SPLITS
from cdxmill.storage.location import locate

MANIFEST = "cluster.json"
URL = "hdfs:///c"


@pytest.mark.parametrize(
    ("names", "replace", "other"),
    [
        ([], False, None),
        (["_report-00000", ".cdx-1.tmp", ".part-1.tmp", "_temporary", "_SUCCESS"], False, None),
        (["_report-00000", "cdx-00000.gz", "part-00000"], False, None),
        (["_report-00000", "cdx-00001.gz"], False, "cdx-00001.gz"),
        (["_report-00000", "part-00001"], False, "part-00001"),
        (["_report-00000", "splits.txt", "splits.seq", "cluster.idx"], False, None),
        (["_report-00000", "cluster.summary", "cluster.loc", MARK], False, None),
        ([MARK], False, None),
        (["cluster.summary"], False, "cluster.summary"),
        (["splits.txt"], False, "splits.txt"),
        (["cluster.idx"], False, "cluster.idx"),
        (["x", "y", "_SUCCESS"], False, "x"),
        ([MANIFEST], False, "a finished cluster"),
        ([MANIFEST, "cdx-00000.gz", "part-00000", "cluster.idx", "splits.txt"], True, None),
        ([MANIFEST, "_report-00007", "cdx-00000.gz"], True, None),
        ([MANIFEST, "x"], True, "x"),
        (["cdx-00000.gz"], True, "cdx-00000.gz"),
    ],
)
def test_what_a_directory_may_hold(names: list[str], replace: bool, other: str | None) -> None:
    from cdxmill.jobs.launcher.zipnum_on_hadoop import clear

    removed: list[list[str]] = []
    left = list(names)

    def remove(some: list[str]) -> None:
        removed.append(some)
        left[:] = [name for name in left if name not in some]

    beside = [".lock", ".run-1"]
    directory: Any = SimpleNamespace(
        url=URL, names=lambda: sorted([*left, *beside]), remove=remove, empty=remove
    )
    if other is None:
        clear(directory, replace)
        assert left == []
        assert removed[:-1] == ([[MANIFEST]] if MANIFEST in names else []), "the manifest is deleted first"
        assert removed[-1] == sorted(set(names) - {MANIFEST})
    else:
        with pytest.raises(UsageError, match=rf"^{URL}: holds .*{other}"):
            clear(directory, replace)
        assert removed == []


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the launcher knows of a cluster; the place exists already."""
    from cdxmill.jobs.launcher import zipnum_on_hadoop

    made: Any = object.__new__(zipnum_on_hadoop.ClusterOnHadoop)
    made.url, made._points, made._parts, made.begun = URL, (b"b 2020",), None, []
    monkeypatch.setattr(zipnum_on_hadoop, "begin", lambda *places: made.begun.append(places))
    return made


@pytest.mark.parametrize(
    ("place", "output"),
    [
        ("hdfs:///c/.run-1", "hdfs:///c/.run-1"),
        ("gs://b/c", "gs://b/c"),
        ("file:///c", None),
        ("s3://b/c", None),
        ("s3a://b/c", None),
    ],
)
@pytest.mark.parametrize(("shards", "convert"), [(1, False), (2, True)])
def test_the_step_sends_lines_to_a_reducer_per_shard(
    place: str, output: str | None, shards: int, convert: bool, cluster: Any, tmp_path: Path
) -> None:
    cluster._place = place
    cluster._build = ZipnumOptions(
        shards=shards, convert=convert, block_lines=7, compressor=Compressor("zlib", 3, 5)
    )
    step = cluster.step([{"paths": ["x"]}], tmp_path)
    packer = ["--compressor", "zlib", "--level", "3", "--section-lines", "5"]
    assert cluster.begun == [(place, URL)]
    assert step.inputs == [{"paths": ["x"]}]
    assert step.mapper == ["chunks", "--compressor", "zlib", *(["--convert"] if convert else [])]
    assert step.reducer == ["shard", "--cluster", place, "--numlines", "7", *packer]
    assert step.output_dir == output
    partitioner = None if shards == 1 else "org.apache.hadoop.mapred.lib.TotalOrderPartitioner"
    assert (step.partitioner, step.shared.keys()) == (partitioner, {"mapreduce.totalorderpartitioner.path"})
    assert step.output_format == "org.apache.hadoop.mapred.lib.NullOutputFormat", "Hadoop adds no part-00000"
    assert step.settings["mapreduce.fileoutputcommitter.marksuccessfuljobs"] == "false"
    assert step.settings["mapreduce.job.reduces"] == str(shards)
    assert step.settings["stream.map.output"] == step.settings["stream.reduce.input"] == "rawbytes"
    assert step.files == {SPLITS: tmp_path / SPLITS}
    assert (tmp_path / SPLITS).read_bytes() == b"b 2020\n"
    (shared,) = step.shared.values()
    assert b"b 2020" in shared.read_bytes()


def noted(done: list[tuple[str, object]], name: str, scheme: str) -> Any:
    """A directory that notes what is done with it."""
    return SimpleNamespace(
        url=f"{scheme}:///c",
        get=lambda patterns, _: done.append((f"get {name}", patterns)),
        put=lambda paths: done.append((f"put {name}", [path.name for path in paths])),
        make=lambda: done.append((f"make {name}", None)),
        remove=lambda names: done.append((f"remove {name}", names)),
        names=lambda: ["cdx-00000.gz", ".cdx-7.tmp"],
    )


@pytest.mark.parametrize("has_parts", [False, True])
@pytest.mark.parametrize("scheme", ["file", "hdfs"])
def test_the_manifest_is_written_last_and_what_tasks_left_is_removed(
    scheme: str, has_parts: bool, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher import zipnum_on_hadoop

    done: list[tuple[str, object]] = []

    def write(*given: Any) -> None:
        done.append(("write", given[1:]))

    cluster._cluster, cluster._parts = noted(done, "cluster", scheme), None
    if has_parts:
        cluster._parts = noted(done, "parts", scheme)
    cluster._build = build = ZipnumOptions(
        shards=2, block_lines=7, compressor=Compressor("zlib", 3, 5), location="/x" if has_parts else None
    )
    reports = [SimpleNamespace(shard=number) for number in range(2)]

    def read(_: object, *given: Any) -> list[SimpleNamespace]:
        done.append(("read", given))
        return reports

    monkeypatch.setattr(zipnum_on_hadoop, "read_reports", read)
    monkeypatch.setattr(zipnum_on_hadoop, "write_cluster_files", write)
    assert cluster.write_files() == reports
    (files,) = [
        given for name, given in done if name == "put cluster" and isinstance(given, list) and len(given) > 1
    ]
    assert (len(files), sorted(files)[-2:]) == (5, ["splits.seq", "splits.txt"])
    parts = [("make parts", None), ("put parts", ["part-00000", "part-00001"])]
    left = [".cdx-7.tmp"] if scheme == "file" else []
    assert done == [
        ("get cluster", ["part-*", "_report-*"]),
        ("read", (2, build.compressor, URL)),
        ("write", ([0, 1], (b"b 2020",), build.compressor, 7, locate("/x" if has_parts else URL))),
        ("put cluster", files),
        *(parts if has_parts else []),
        ("put cluster", [MANIFEST]),
        ("remove cluster", ["_report-00000", "_report-00001", *left]),
    ]


@pytest.mark.parametrize(
    ("path", "is_shard"),
    [
        ("hdfs:///c/cdx-00000.gz", True),
        ("hdfs://names:8020/c/cdx-00000.gz", True),
        ("/c/cdx-00000.gz", False),
        ("hdfs:///c/other.cdx.gz", False),
        ("hdfs:///d/cdx-00000.gz", False),
    ],
)
def test_an_input_is_not_replaced(path: str, is_shard: bool) -> None:
    from cdxmill.jobs.launcher.zipnum_on_hadoop import check_shards_stay

    for directory in (URL, URL + "/", "/c"):
        if is_shard:
            with pytest.raises(UsageError, match=f"^{path}: is an input; choose another output"):
                check_shards_stay(directory, [path])
        else:
            check_shards_stay(directory, [path])


@pytest.mark.parametrize(
    ("directory", "alias", "url"),
    [
        ("/c/", "hadoop", "hdfs:///c"),
        ("s3://b/c/", "hadoop", "s3://b/c"),
        ("s3://b/c", "emr", "s3://b/c"),
    ],
)
@pytest.mark.parametrize("parts", [None, "same", "gs://b/parts"])
@pytest.mark.parametrize("points", [None, (b"b 2020",)])
def test_the_places_of_a_cluster_are_tried_and_held_before_the_job(
    directory: str,
    alias: str,
    url: str,
    parts: str | None,
    points: tuple[bytes, ...] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from cdxmill.jobs.launcher import zipnum_on_hadoop

    done: list[object] = []

    def directory_of(place: str, _: object) -> object:
        return SimpleNamespace(url=place, check_writable=lambda: done.append(f"tried {place}"))

    @contextmanager
    def held(place: str) -> Iterator[None]:
        done.append(f"held {place}")
        yield
        done.append("free")

    monkeypatch.setattr(zipnum_on_hadoop, "directory_of", directory_of)
    monkeypatch.setattr(zipnum_on_hadoop, "held", held)

    def building(*given: object) -> str:
        done.append(given[:2])
        return "own"

    monkeypatch.setattr(zipnum_on_hadoop, "building_place", building)
    monkeypatch.setattr(zipnum_on_hadoop, "finish_switch", lambda *given: done.append(given))
    runner, build = cast("Any", SimpleNamespace(alias=alias)), ZipnumOptions(points=points, replace=True)
    given = directory if parts == "same" else parts
    with ExitStack() as holding:
        made = zipnum_on_hadoop.ClusterOnHadoop(directory, given, build, runner, holding)
        beside = [f"tried {parts}"] if parts == "gs://b/parts" else []
        assert done == [f"tried {url}", f"held {url}", (url, True), *beside]
        assert (made.url, made._points, made._cluster.url) == (url, points or (), "own")
        assert (made._parts is None) == (not beside)
        made.switch()
    assert done[-2:] == [("own", url), "free"]


def test_what_is_built_in_its_place_is_not_switched(monkeypatch: pytest.MonkeyPatch) -> None:
    from cdxmill.jobs.launcher import zipnum_on_hadoop

    begun: list[object] = []
    monkeypatch.setattr(zipnum_on_hadoop, "start_run", lambda *given: begun.append(given))
    monkeypatch.setattr(zipnum_on_hadoop, "run_id", lambda: "1")
    zipnum_on_hadoop.begin("gs://b/c", "gs://b/c")
    zipnum_on_hadoop.finish_switch("gs://b/c", "gs://b/c")
    assert begun == []
    zipnum_on_hadoop.begin("s3://b/c/own", "s3://b/c")
    assert begun == [(locate("s3://b/c"), "1")]


@pytest.mark.parametrize(
    ("is_reached", "replace", "names", "left", "calls"),
    [
        (False, False, [], [], ["clear False"]),
        (False, True, [MANIFEST], ["1"], ["clear True"]),
        (True, False, [], [], ["mend", "clear False", "remove"]),
        (True, True, [], [], ["mend", "clear False", "remove"]),
        (True, False, [MANIFEST], [], ["mend", "clear False", "remove"]),
        (True, True, [MANIFEST], ["1"], ["mend", "ended ['1']", "replaceable", "remove"]),
    ],
)
def test_what_failed_jobs_left_is_looked_at_before_a_cluster_is_built(
    is_reached: bool,
    replace: bool,
    names: list[str],
    left: list[str],
    calls: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from cdxmill.jobs.launcher import zipnum_on_hadoop

    done: list[str] = []

    def note(name: str, text: Callable[..., str]) -> None:
        monkeypatch.setattr(zipnum_on_hadoop, name, lambda *given, **more: done.append(text(*given, **more)))

    note("mend", lambda *_: "mend")
    note("check_ended", lambda runs, *_: f"ended {runs}")
    note("check_replaceable", lambda _: "replaceable")
    note("clear", lambda _, replace: f"clear {replace}")
    note("remove_runs", lambda _: "remove")
    for name, value in {
        "is_reached": is_reached,
        "left_runs": left,
        "entries": names,
        "directory_of": None,
        "run_id": "7",
    }.items():
        monkeypatch.setattr(zipnum_on_hadoop, name, lambda *_, value=value: value)
    runner: Any = None
    found = zipnum_on_hadoop.building_place("s3://b/c", replace, runner)
    assert done == calls
    assert (found != "s3://b/c") == is_reached
    assert found.startswith("s3://b/c")


def test_a_link_to_a_cluster_is_where_it_leads_and_links_above_stay(tmp_path: Path) -> None:
    from cdxmill.jobs.launcher.zipnum_on_hadoop import _place_of

    (tmp_path / "real/c").mkdir(parents=True)
    (tmp_path / "above").symlink_to(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real/c")
    for name, place in (("link", "real/c"), ("above/c", "above/c"), ("real/c", "real/c"), ("new", "new")):
        assert Path(_place_of((tmp_path / name).as_uri()).local) == tmp_path / place
    assert _place_of("s3://b/c") == locate("s3://b/c")
