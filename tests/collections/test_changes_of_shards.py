"""The shards and overlays that a change writes: which, under what names, with what counts, and what is left of them."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import cdxmill
from cdxmill.cluster import change as change_module
from cdxmill.cluster.change import Change, open_change
from cdxmill.cluster.overlays import filter_content
from cdxmill.cluster.own_run import left_runs, run_place, start_run
from cdxmill.cluster.write import read_manifest
from cdxmill.commands.collections import change_shards as module
from cdxmill.commands.collections.add_lines import NewLines, add_lines, overlay_runs
from cdxmill.commands.collections.change_shards import (
    ChangeWanted,
    Done,
    Others,
    blocks_of,
    change_shards,
    compressor_of,
    overlay_compressor,
    work_directory,
)
from cdxmill.commands.collections.other_clusters import OtherCluster
from cdxmill.commands.collections.removal import Removal, Restriction
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.zipnum import MANIFEST, BlockRef
from cdxmill.messages import Step
from cdxmill.options.collections import Adding
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import listened_to
from cdxmill.stages.lines.drop_lines import LineRange
from cdxmill.stages.lines.merge_lines import merge_slices
from cdxmill.stages.lines.sort_lines import LineSorter, Run
from cdxmill.stages.zipnum.change_shard import ChangeRule, Changes
from cdxmill.storage.location import Location, locate
from cdxmill.storage.scratch import Scratch

LINES = [b"com,a)/%d 2020 {}" % number for number in range(9)]
EXTRA = [b"com,a)/%d 2021 {}" % number for number in range(0, 9, 4)]
EVERYTHING = LineRange(b"", b"\xff")
RULE = ChangeRule(2)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clusters of LINES in shards of 5, 3, 1 and 0 lines, with blocks of 2: plain, and over, with two overlays of EXTRA and LINES[:2]."""
    place = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(change_module, "LOCATIONS_FIRST", 0)
        patch.setattr(os, "fsync", lambda _: None)
        for name, lines in (("lines", LINES), ("extra", EXTRA)):
            (place / f"{name}.cdxj").write_bytes(b"\n".join([*lines, b""]))
        (place / "points").write_text("com,a)/5\ncom,a)/8\ncom,b)/\n")
        cdxmill.zipnum(
            place / "lines.cdxj", output=place / "plain", splits=place / "points", numlines=2, processes=1
        )
        shutil.copytree(place / "plain", place / "over")
        cdxmill.add(place / "over", place / "extra.cdxj", cdx=True, mode="overlay", keep_old=0, processes=1)
    return place


@pytest.fixture(autouse=True)
def here(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("plain", "over"):
        shutil.copytree(built / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def opened() -> Iterator[Callable[[str], tuple[Change, Path]]]:
    """A function that opens a cluster to change it; and scratch space."""
    with ExitStack() as files:

        def open_one(name: str) -> tuple[Change, Path]:
            change = files.enter_context(open_change(name, print))
            return change, files.enter_context(work_directory(change))

        yield open_one


Open = Callable[[str], tuple[Change, Path]]


def runs(scratch: Path, lines: Sequence[bytes]) -> list[Run]:
    sorter = LineSorter(Scratch(scratch).create, "new")
    sorter.add(list(lines))
    return sorter.finish() if lines else []


def names(done: Done) -> list[str]:
    return [one.name for one in done.shards]


def lines_of(change: Change, done: Done) -> list[list[bytes]]:
    """The lines of each file."""
    return [gzip.decompress((change.place / one.name).read_bytes()).splitlines() for one in done.shards]


OLD = ["cdx-00000.gz", "cdx-00001.gz", "cdx-00002.gz", "cdx-00003.gz"]


@pytest.mark.parametrize(
    ("added", "removed", "changed", "counts"),
    [
        ([], [], [], Changes()),
        ([b"com,a)/6 2021 {}"], [], [1], Changes(added=1, written=2)),
        ([b"com,a)/5 2019 {}"], [], [1], Changes(added=1, written=1)),
        ([LINES[0]], [], [], Changes(present=1)),
        ([b"com,b)/ 2020 {}"], [], [3], Changes(added=1, written=1)),
        ([], [LineRange(LINES[1], LINES[2])], [0], Changes(removed=1, written=1)),
        ([], [LineRange(LINES[4], LINES[6])], [0, 1], Changes(removed=2, written=1)),
        ([], [LineRange(LINES[8], b"x")], [2], Changes(removed=1)),
        ([], [LineRange(b"com,b)/", b"x")], [], Changes()),
        ([], [LineRange(b"com,a)/30", b"com,a)/31")], [], Changes()),
        ([b"com,a)/0 2019 {}"], [LineRange(LINES[8], b"x")], [0, 2], Changes(added=1, removed=1, written=1)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("writes", [True, False])
def test_the_shards_that_change_are_written_and_no_other(
    added: list[bytes],
    removed: list[LineRange],
    changed: list[int],
    counts: Changes,
    writes: bool,
    opened: Open,
) -> None:
    """Without writing, only what would be removed is found out."""
    change, scratch = opened("plain")
    removal = Removal(removed, Restriction()) if removed else None
    done = change_shards(
        change, ChangeWanted(runs=runs(scratch, added), removal=removal, rule=RULE), scratch, writes
    )
    gone = [line for line in LINES if any(one.low <= line < one.high for one in removed)]
    assert [line for lines in done.gone_lines() for line in lines] == gone
    assert done.of_overlays == 0
    if not writes:
        assert (names(done), done.counts.removed) == (OLD, len(gone))
        assert not [path for path in Path("plain").glob("*-1*") if path.is_file()]
        return
    wanted = [name.replace(".gz", "-1.gz") if number in changed else name for number, name in enumerate(OLD)]
    assert (names(done), done.counts._replace(copied=0)) == (wanted, counts)
    found = lines_of(change, done)
    assert [line for lines in found for line in lines] == sorted({*LINES, *added} - {*gone})
    assert [one.lines for one in done.shards] == list(map(len, found))
    assert {path.name for path in Path("plain").glob("part-*-1")} == {f"part-{n:05d}-1" for n in changed}


def test_the_largest_shard_is_changed_first(opened: Open) -> None:
    change, scratch = opened("plain")
    wanted = ChangeWanted(removal=Removal([EVERYTHING]), rule=RULE)
    tasks = module._tasks(change, wanted, module._TaskMaker(change, RULE, change.place, scratch, False))
    assert [task.number for task in tasks] == [0, 1, 2]
    assert [task.entry.bytes for task in tasks] == sorted((task.entry.bytes for task in tasks), reverse=True)
    assert [task.bounds for task in tasks] == [
        (b"", b"com,a)/5"),
        (b"com,a)/5", b"com,a)/8"),
        (b"com,a)/8", b"com,b)/"),
    ]
    assert not any(task.writes or task.added for task in tasks)


def test_a_removal_looks_into_overlays_and_counts_a_line_once(opened: Open) -> None:
    change, scratch = opened("over")
    (overlay,) = change.manifest.overlays
    assert overlay.name == "overlay-00001-1.gz"
    for ranges, left, gone in (
        ([LineRange(b"com,a)/1", b"com,a)/4")], 3, LINES[1:4]),
        ([LineRange(b"com,a)/0", b"com,a)/1")], 2, [LINES[0], EXTRA[0]]),
        ([EVERYTHING], 0, sorted(LINES + EXTRA)),
    ):
        done = change_shards(change, ChangeWanted(removal=Removal(ranges), rule=RULE), scratch)
        assert [line for lines in done.gone_lines() for line in lines] == gone
        assert done.counts.removed == len(gone)
        young = [one for one in done.shards if one.name.startswith("overlay")]
        assert [one.lines for one in young] == ([left] if left else [])
        name = overlay.name if left == 3 else "overlay-00001-2.gz"
        assert [one.name for one in young] == ([name] if left else [])
        assert sorted(path.name for path in Path("over").glob("overlay-00001-2*")) == (
            [f"overlay-00001-2{end}" for end in (".gz", ".idx", ".keys")] if left == 2 else []
        )
        assert done.of_overlays == (left < 3)
        for one in young:
            content = filter_content(change.place, one, change.place / one.name)
            assert Path("over", one.name.replace(".gz", ".keys")).read_bytes() == content
        for path in [*Path("over").glob("*-2.*"), *Path("over").glob("part-*-2")]:
            path.unlink()


def test_an_overlay_keeps_the_number_of_the_change_that_made_it(opened: Open) -> None:
    change, scratch = opened("over")
    (overlay,) = change.manifest.overlays
    older = change.manifest._replace(overlays=(overlay._replace(name="overlay-00003-5.gz"),))
    change = change._replace(manifest=older, number=9)
    wanted = ChangeWanted(removal=Removal([EVERYTHING]), rule=RULE)
    tasks = module._tasks(change, wanted, module._TaskMaker(change, RULE, change.place, scratch, False))
    assert [(task.number, task.name) for task in tasks if "overlay" in task.name] == [
        (4, "overlay-00003-9.gz")
    ]


def test_the_file_of_removed_lines_is_closed(tmp_path: Path) -> None:
    with module._Gone(Scratch(tmp_path), 7) as none:
        pass
    with module._Gone(Scratch(tmp_path), 8) as gone:
        gone.add(LINES[:1])
        gone.add(LINES[1:2])
    assert (none.name, gone.name, gone._file.closed) == ("", "gone-00008", True)
    assert (tmp_path / "gone-00008").read_bytes() == LINES[0] + b"\n" + LINES[1] + b"\n"


def test_a_line_of_a_shard_and_of_an_overlay_is_removed_once(opened: Open) -> None:
    change, scratch = opened("over")
    done = add_lines(
        change, NewLines(runs(scratch, [LINES[0]])), Adding("over", ["x"], mode="overlay"), scratch
    ).done
    assert (names(done)[-1], done.counts) == ("overlay-00002-2.gz", Changes(added=1, written=1))
    both = change._replace(
        manifest=change.manifest._replace(overlays=(*change.manifest.overlays, done.shards[-1])), number=3
    )
    removed = change_shards(
        both, ChangeWanted(removal=Removal([LineRange(LINES[0], LINES[1])]), rule=RULE), scratch
    )
    assert (removed.counts.removed, removed.of_overlays) == (2, 2)
    assert [line for lines in removed.gone_lines() for line in lines] == [LINES[0], EXTRA[0]]


def test_compacting_writes_what_was_changed_and_the_lines_of_overlays(opened: Open) -> None:
    change, scratch = opened("over")
    found = overlay_runs(change, scratch)
    assert [
        line
        for lines in merge_slices([run.whole() for run in found], Scratch(scratch).reader)
        for line in lines
    ] == EXTRA
    rule = ChangeRule(2, recut=True)
    done = change_shards(change, ChangeWanted(runs=found, rule=rule), scratch)
    assert names(done)[:4] == ["cdx-00000-2.gz", "cdx-00001.gz", "cdx-00002-2.gz", "cdx-00003.gz"]
    moved = (
        *change.manifest.shards[:1],
        change.manifest.shards[1]._replace(name="cdx-00001-1.gz"),
        *change.manifest.shards[2:],
    )
    for end in ("cdx-00001.gz", "part-00001"):
        shutil.copyfile(f"over/{end}", "over/" + end.replace("00001", "00001-1"))
    uneven = change._replace(manifest=change.manifest._replace(shards=moved))
    wanted = ChangeWanted(rule=rule)
    maker = module._TaskMaker(uneven, rule, uneven.place, scratch, True)
    assert [task.number for task in module._tasks(uneven, wanted, maker)] == [1]
    assert [*module._tasks(uneven, ChangeWanted(rule=RULE), maker)] == []


def test_lines_of_other_clusters_come_into_their_shards(opened: Open) -> None:
    change, scratch = opened("plain")
    place = locate("over")
    others = [OtherCluster(place, read_manifest(place / MANIFEST))]
    done = change_shards(
        change, ChangeWanted(others=Others(others, [LineRange(b"com,a)/0", b"com,a)/1")]), rule=RULE), scratch
    )
    assert [line for lines in lines_of(change, done) for line in lines] == sorted([*LINES, *EXTRA[1:]])
    assert (done.counts.added, done.counts.present, done.counts.excluded) == (2, 8, 2)
    assert names(done)[3] == "cdx-00003.gz"


@pytest.mark.parametrize("fails", [False, True])
def test_an_engine_writes_to_a_directory_of_its_run(
    fails: bool, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an earlier run has left there is deleted, and so is that of this one. Nothing is moved if the lock is lost."""
    change, scratch = opened("plain")
    old = start_run(change.place, "0123456789abcdef")
    place = locate("over")
    others = Others([OtherCluster(place, read_manifest(place / MANIFEST))])
    targets: list[Location] = []

    def engine(work: Any, tasks: Any, processes: int, tick: Any) -> Any:
        targets.extend(task.target for task in tasks)
        assert not old.exists()
        assert [run_place(change.place, one) for one in left_runs(change.place)] == [tasks[0].target]
        return run_tasks(work, tasks, processes, tick)

    def lost() -> None:
        raise StoppedError("another run has taken this directory")

    if fails:
        monkeypatch.setattr(module, "check_held", lost)
    before = sorted(path.name for path in Path("plain").glob("cdx-*"))
    wanted = ChangeWanted(others=others, rule=RULE, run=engine)
    if fails:
        with pytest.raises(StoppedError, match="another run"):
            change_shards(change, wanted, scratch)
        assert sorted(path.name for path in Path("plain").glob("cdx-*")) == before
    else:
        done = change_shards(change, wanted, scratch)
        assert sorted(path.name for path in Path("plain").glob("cdx-*")) == sorted({*before, *names(done)})
        assert len(names(done)) == 4 and names(done)[0] == "cdx-00000-1.gz"
    assert len({*targets}) == 1 and targets[0] != change.place
    assert not targets[0].exists()


def test_each_shard_is_a_step(opened: Open) -> None:
    change, scratch = opened("plain")
    steps: list[Step] = []
    with listened_to(steps.append):
        change_shards(change, ChangeWanted(removal=Removal([EVERYTHING]), rule=RULE, quiet=False), scratch)
    total = sum(one.bytes for one in change.manifest.shards[:3])
    assert steps[-1] == Step("changing shards", 3, 3, total, total, 0)


def test_a_shard_is_changed_with_the_compressor_of_the_cluster(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, scratch = opened("plain")
    used = change.manifest.compressor
    assert compressor_of(change) == Compressor(used.library, used.level, used.section_lines)
    assert overlay_compressor(change) == Compressor(used.library, used.level, 0)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "zlib_ng", None)
        with pytest.raises(UsageError, match="the compressor zlib-ng is not installed"):
            compressor_of(change)
    (task, *_) = module._tasks(
        change,
        ChangeWanted(removal=Removal([EVERYTHING]), rule=RULE),
        module._TaskMaker(change, RULE, change.place, scratch, True),
    )
    with pytest.raises(
        StoppedError, match=r"a node has zlib.*, this machine other 1: install the same version"
    ):
        module._change_shard(task._replace(version="other 1"))


def test_the_work_of_a_change_is_on_the_disk_of_the_cluster(opened: Open) -> None:
    change, scratch = opened("plain")
    assert scratch.absolute() == Path("plain/.change/work").absolute()
    with work_directory(change._replace(place=Location("s3://bucket/C"))) as away:
        assert away.name == "work" and away.parent.is_dir()
    assert not away.parent.exists()


def test_the_blocks_of_a_shard_are_those_of_its_part() -> None:
    place = locate("plain")
    first, *_ = blocks_of(place, "cdx-00001.gz")
    assert isinstance(first, BlockRef) and first.key == b"com,a)/5 2020"
    assert len(blocks_of(place, "cdx-00000.gz")) == 3
    assert blocks_of(place, "cdx-00003.gz") == []
    Path("plain/part-00001").write_bytes(b"no columns\n")
    with pytest.raises(InputError) as told:
        blocks_of(place, "cdx-00001.gz")
    assert str(told.value).startswith("plain/part-00001: ")
    assert str(told.value).endswith("; check the cluster with cdxmill verify")
