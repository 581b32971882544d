"""One run of `zipnum`: its options, what it notes, and what it refuses before it writes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdxmill.cluster.write import read_record
from cdxmill.commands.clusters import sorting, zipnum
from cdxmill.commands.clusters.zipnum import (
    Beside,
    ClusterSummary,
    _split_points,
    build_cluster,
    check_inputs,
    run_of,
    summary_of_made,
    zipnum_options,
)
from cdxmill.commands.clusters.zipnum_options import Made, ZipnumOptions
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.inputs.cdx_files import CdxSource, Inventory, take_inventory
from cdxmill.options.clusters import Zipnum
from cdxmill.running.failures import Failure, Failures
from cdxmill.stages.lines.drop_lines import LineRange
from cdxmill.storage.location import Location, locate
from cdxmill.tasks.sampling import SAMPLES_PER_SHARD

from ..material.cdx_files import as_text, write_plain
from ..material.clusters import shards_of

A, B, C, D = (b"com,%c)/ 2020 {}" % letter for letter in b"abcd")
HERE = ZipnumOptions(shards=1, quiet=True)


class Told(Failures):
    """Failures that keep their notes."""

    def __init__(self) -> None:
        super().__init__(printed=False)
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a.cdxj, which has four lines, one of them twice."""
    monkeypatch.chdir(tmp_path)
    write_plain(Path("a.cdxj"), [D, B, A, B, C])
    return tmp_path


def built(
    options: ZipnumOptions = HERE, told: Told | None = None, *paths: str, place: str = "C"
) -> ClusterSummary:
    return build_cluster(paths or ["a.cdxj"], place, options, told or Told())


def test_options_are_taken_as_they_are_given() -> None:
    usual = Zipnum("x", output="C")
    assert zipnum_options(usual) == ZipnumOptions(processes=usual.processes, quiet=usual.quiet)
    asked = Zipnum(
        "x", output="C", shards=3, seed=7, numlines=9, processes=2, location="/x", replace=True,
        compressor="zlib", level=2, section_lines=4,
    )  # fmt: skip
    asked.quiet = not usual.quiet
    wanted = ZipnumOptions(
        shards=3,
        seed=7,
        block_lines=9,
        processes=2,
        location="/x",
        replace=True,
        compressor=Compressor("zlib", 2, 4),
        quiet=not usual.quiet,
    )
    assert zipnum_options(asked) == wanted
    assert zipnum_options(asked, convert=True) == replace(wanted, convert=True)
    assert zipnum_options(asked, points=(b"a", b"b")) == replace(wanted, points=(b"a", b"b"))


@pytest.mark.parametrize(
    ("lines", "shards", "number"),
    [([b"a", b"b"], None, 3), ([b"a", b"b"], 3, 3), ([], None, 1), ([b"a", b"b"], 2, 0), ([b"a", b"b"], 4, 0), ([], 2, 0)],
)  # fmt: skip
def test_split_points_decide_the_number_of_shards(
    lines: list[bytes], shards: int | None, number: int
) -> None:
    write_plain(Path("s.txt"), lines)
    asked = Zipnum("x", output="C", splits="s.txt", shards=shards)
    if number:
        found = zipnum_options(asked)
        assert (found.shards, found.points) == (number, tuple(lines))
        return
    with pytest.raises(UsageError) as raised:
        zipnum_options(asked)
    why = f"--shards {shards} does not match s.txt, which gives {len(lines) + 1} shards; omit one of the two options"
    assert str(raised.value) == why


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"compressor": "lz4"}, "invalid compressor 'lz4'"),
        ({"compressor": "zlib", "level": 10}, "invalid level 10"),
        ({"compressor": "libdeflate", "section_lines": 5}, "libdeflate cannot make sections"),
    ],
)
def test_a_compressor_that_does_not_exist_is_wrong_usage(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError) as raised:
        zipnum_options(Zipnum("x", output="C", **options))
    assert str(raised.value).startswith(f"--compressor, --level, --section-lines: {reason}")


def test_a_sample_is_taken_only_if_split_points_are_wanted() -> None:
    assert ZipnumOptions(shards=3).sample_size == 3 * SAMPLES_PER_SHARD
    assert ZipnumOptions(shards=3, points=(b"a", b"b")).sample_size == 0
    assert ZipnumOptions(shards=1, points=()).sample_size == 0


@pytest.mark.parametrize(
    ("new", "by_size", "text"),
    [
        (True, False, "4 lines in 1 block, 2 shards, 9 B, 1 duplicate line removed"),
        (True, True, "4 lines in 1 block, 2 shards (by size), 9 B, 1 duplicate line removed"),
        (False, False, "4 lines in 1 block, 2 shards, 9 B, 1 duplicate line removed; unchanged, because it has these inputs already"),
    ],
)  # fmt: skip
def test_a_summary_says_how_the_number_of_shards_was_found(new: bool, by_size: bool, text: str) -> None:
    assert str(ClusterSummary(2, 4, 1, 1, 9, new, by_size)) == text


@pytest.mark.parametrize("by_size", [True, False])
def test_a_second_run_returns_what_the_first_one_built(by_size: bool) -> None:
    options = replace(HERE, shards=0 if by_size else 1)
    first = built(options)
    size = Path("C/cdx-00000.gz").stat().st_size
    assert first == ClusterSummary(1, 4, 1, 1, size, new=True, by_size=by_size)
    assert not Path("C/.work").exists()
    assert built(options) == first._replace(new=False)


@pytest.mark.parametrize(
    "change",
    [
        lambda options: replace(options, location="/elsewhere"),
        lambda options: replace(options, block_lines=2),
        lambda options: replace(options, seed=1),
        lambda options: replace(options, convert=True),
        lambda options: replace(options, compressor=Compressor("zlib", 1)),
        lambda options: replace(options, method="other"),
        lambda options: replace(options, points=(b"a",)),
        lambda options: replace(options, excluded=(LineRange(b"a", b"b"),)),
    ],
)
def test_other_options_are_another_run(change: Callable[[ZipnumOptions], ZipnumOptions]) -> None:
    inventory = take_inventory(["a.cdxj"], formats=True)
    first = run_of(inventory, HERE)
    assert run_of(inventory, replace(HERE, processes=9, quiet=False, replace=True)) == first
    assert run_of(inventory, change(HERE)) != first
    os.utime("a.cdxj", (5, 5))
    assert run_of(take_inventory(["a.cdxj"], formats=True), HERE) != first


def test_lines_that_are_excluded_are_counted() -> None:
    Path("C").mkdir()
    Path("C/exclude.txt").write_text("a.com/*\nb.com/*\n")
    write_plain(Path("b.cdxj"), [A, C])
    told = Told()
    assert built(HERE, told, "a.cdxj", "b.cdxj").lines == 2
    assert told.notes == ["note: 4 lines skipped, as exclude.txt says"]
    assert shards_of(Path("C")) == [as_text([C, D])]
    assert built(HERE, told, place="E").lines == 4
    assert len(told.notes) == 1


def test_an_engine_that_cannot_exclude_lines_is_refused() -> None:
    Path("C").mkdir()

    def make(*given: object) -> Made:
        raise AssertionError("it is not asked")

    assert built(replace(HERE, make=None)).new
    Path("C/exclude.txt").write_text("a.com/*\n")
    with pytest.raises(
        UsageError, match=r"C/exclude\.txt: is applied by the local engine only; use --engine local"
    ):
        built(replace(HERE, make=make))
    with pytest.raises(AssertionError):
        built(replace(HERE, make=make), place="E")


def test_an_input_is_never_a_shard_that_is_replaced() -> None:
    built()
    for options in (HERE, replace(HERE, replace=True)):
        with pytest.raises(UsageError, match="is an input"):
            built(options, None, "C/cdx-00000.gz")
    assert built(HERE, None, "C/cdx-00000.gz", place="D").lines == 4


def test_inputs_of_two_formats_are_refused_before_anything_is_written() -> None:
    write_plain(Path("b.cdx"), [b"com,b)/ 2020 http://b.com/ text/html 200 AAAA - 0 a.warc.gz"])
    with pytest.raises(UsageError, match=r"a\.cdxj is CDXJ, but b\.cdx is CDX with 9 fields"):
        built(HERE, None, "a.cdxj", "b.cdx")
    assert not Path("C").exists()


def test_while_a_run_continues_there_is_no_index_of_what_it_replaces() -> None:
    def make(inventory: Inventory, directory: Location, options: ZipnumOptions, failures: Failures) -> Made:
        assert {"cluster.idx", "cluster.loc"} & directory.entries().keys() == set()
        raise StoppedError("the engine is gone")

    Path("C/.work").mkdir(parents=True)
    for name in (".work/shards.json", ".work/job.json", "cluster.idx", "cluster.summary", "cluster.loc"):
        Path("C", name).write_text("1")
    with pytest.raises(StoppedError, match="the engine is gone"):
        built(replace(HERE, make=make))
    assert sorted(path.name for path in Path("C").iterdir()) == [".work"]
    assert built().lines == 4


def test_a_place_that_cannot_be_written_is_refused_before_inputs_are_read() -> None:
    with pytest.raises(UsageError, match=r"http://127\.0\.0\.1:1/C"):
        built(HERE, None, "absent.cdxj", place="http://127.0.0.1:1/C")


def test_inputs_that_have_one_archive_twice_are_noted() -> None:
    line = 'com,%s)/ 2020 {"url": "http://x/", "filename": "a.warc.gz", "offset": "%d", "length": "9"}\n'
    Path("a.cdxj").write_text(line % ("a", 0))
    Path("b.cdxj").write_text(line % ("b", 5))
    told = Told()
    built(HERE, told, "a.cdxj", "b.cdxj")
    assert [note for note in told.notes if "a.warc.gz" in note] == told.notes
    assert len(told.notes) == 1
    built(HERE, told, "a.cdxj", "b.cdxj")
    assert len(told.notes) == 1, "not again, if nothing is to be done"


def test_a_run_may_have_files_beside_the_cluster() -> None:
    build_cluster(["a.cdxj"], "C", HERE, Told(), Beside(["cdx/a"], b"a\t/a\n"))
    assert Path("C/archives.tsv").read_bytes() == b"a\t/a\n"
    record = read_record(locate("C"))
    assert record is not None
    assert (record.files, record.summary[:4]) == (["cdx/a"], [1, 4, 1, 1])
    built(place="D")
    assert not Path("D/archives.tsv").exists()
    assert Path("D/cluster.loc").read_text() == f"cdx-00000.gz\t{Path('D').absolute()}/cdx-00000.gz\n"
    built(replace(HERE, location="/x"), place="E")
    assert Path("E/cluster.loc").read_text() == "cdx-00000.gz\t/x/cdx-00000.gz\n"


@pytest.mark.parametrize("is_all", [True, False])
def test_without_any_input_that_can_be_read_nothing_is_written(is_all: bool) -> None:
    Path("bad.cdxj").write_bytes(b"no line of an index\n")
    told, paths = Told(), ["bad.cdxj"] if is_all else ["bad.cdxj", "a.cdxj"]
    if not is_all:
        assert built(HERE, told, *paths).lines == 4
    else:
        with pytest.raises(InputError) as raised:
            built(HERE, told, *paths)
        assert raised.value.path == "C"
        assert raised.value.reason == "no input can be read, so no cluster was written"
        assert not Path("C/.work").exists()
        assert not Path("C/cluster.json").exists()
    assert [failure.path for failure in told.items] == ["bad.cdxj"]


def engine(*, has_read_twice: bool, failed: bool = False, time: int = 5) -> Any:
    """An engine that writes one shard of nothing, and sets the time of an input meanwhile."""

    def make(inventory: Inventory, directory: Location, options: ZipnumOptions, failures: Failures) -> Made:
        os.utime("a.cdxj", (time, time))
        for name in ("cdx-00000.gz", "part-00000"):
            (directory / name).write_atomic().__enter__().close()
            Path((directory / name).local).write_bytes(b"")
        failed_ones = [Failure("a.cdxj", None, "is bad")] if failed else []
        return Made([ShardEntry("cdx-00000.gz", 0, 0, 0, "")], [], 0, failed_ones, has_read_twice)

    return make


@pytest.mark.parametrize(("has_read_twice", "time"), [(True, 7), (False, 5), (True, 5)])
def test_inputs_that_change_between_two_reads_stop_the_run(has_read_twice: bool, time: int) -> None:
    os.utime("a.cdxj", (7, 7))
    options = replace(HERE, make=engine(has_read_twice=has_read_twice, time=time))
    if not has_read_twice or time == 7:
        assert built(options).lines == 0
        return
    with pytest.raises(StoppedError, match="inputs were changed while they were read; run it again"):
        built(options)
    assert not Path("C/cluster.json").exists()


def test_an_engine_that_could_read_nothing_wrote_no_cluster() -> None:
    with pytest.raises(InputError, match="C: no input can be read, so no cluster was written"):
        built(replace(HERE, make=engine(has_read_twice=True, failed=True)))
    assert not Path("C/.work").exists()


def test_the_summary_of_a_new_cluster_is_that_of_its_shards() -> None:
    shards = [ShardEntry("a", 5, 3, 2, ""), ShardEntry("b", 7, 4, 1, "")]
    assert summary_of_made(Made(shards, [b"x"], 10, [])) == ClusterSummary(2, 7, 3, 3, 12)


def source(fields: int | None, name: str = "a.cdx") -> CdxSource:
    return CdxSource(locate(name), 1, 1.0, fields)


@pytest.mark.parametrize(
    ("sources", "convert", "reason"),
    [
        ([source(6)], True, ""),
        ([source(None)], True, ""),
        ([source(None), source(6)], True, ""),
        ([source(9)], False, ""),
        ([source(9)], True, "--convert takes CDX lines with 6 fields, but a.cdx is CDX with 9 fields"),
        ([source(None), source(0, "b.cdx")], True, "--convert takes CDX lines with 6 fields, but b.cdx is CDXJ"),
        ([source(9), source(None), source(11, "b.cdx")], False, "a.cdx is CDX with 9 fields, but b.cdx is CDX with 11"),
    ],
)  # fmt: skip
def test_inputs_have_one_format_and_the_one_that_is_converted(
    sources: list[CdxSource], convert: bool, reason: str
) -> None:
    options = replace(HERE, convert=convert)
    if not reason:
        check_inputs(Inventory(sources), options)
        return
    with pytest.raises(UsageError) as raised:
        check_inputs(Inventory(sources), options)
    assert str(raised.value).startswith(reason)


def test_a_compressor_that_is_not_installed_is_told_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "zlib_ng", None)
    with pytest.raises(UsageError, match=r"the compressor zlib-ng is not installed \(pip install zlib-ng\)"):
        built()
    assert not Path("C").exists()
    assert built(replace(HERE, compressor=Compressor("zlib", 6))).lines == 4


@pytest.mark.parametrize(
    ("points", "kept", "ceiling", "asks", "found"),
    [
        ((b"x",), 0, 0.5, False, [b"x"]),
        (None, 3, 0.5, True, [b"again"]),
        (None, 4, 0.5, False, [b"k2"]),
        (None, 3, 1.0, False, [b"k1"]),
    ],
)
def test_a_sample_that_came_out_too_small_is_taken_again(
    points: tuple[bytes, ...] | None, kept: int, ceiling: float, asks: bool, found: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    asked: list[object] = []

    def again(*given: object) -> list[tuple[float, bytes]]:
        asked.append(given[2:])
        return [(0.1, b"a"), (0.2, b"again")]

    monkeypatch.setattr(zipnum, "guess_ceiling", lambda inventory, size: ceiling)
    monkeypatch.setattr(zipnum, "run_sampling", again)
    monkeypatch.setattr("cdxmill.commands.clusters.zipnum_options.SAMPLES_PER_SHARD", 2)
    options = ZipnumOptions(shards=2, points=points, processes=3, quiet=True)
    sample = [(0.1, b"k%d" % number) for number in range(kept)]
    assert _split_points(take_inventory(["a.cdxj"]), sample, options, Told()) == found
    assert asked == ([(3, True, None)] if asks else [])


@pytest.mark.parametrize(("points", "size", "ceiling"), [(None, 2, 0.25), ((b"x",), 0, 1.0)])
def test_files_are_sorted_and_sampled_as_the_options_say(
    points: tuple[bytes, ...] | None, size: int, ceiling: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorting, "guess_ceiling", lambda inventory, size: 0.25)
    monkeypatch.setattr("cdxmill.commands.clusters.zipnum_options.SAMPLES_PER_SHARD", 1)
    excluded = (LineRange(b"a", b"b"),)
    options = ZipnumOptions(shards=2, points=points, seed=7, convert=True, excluded=excluded)
    inventory = take_inventory(["a.cdxj"], formats=True)
    (task,) = sorting._sort_tasks(inventory, Path("s"), options)
    assert (task.number, task.sources, task.scratch) == (0, inventory.sources, Path("s"))
    assert (task.seed, task.sample_size, task.ceiling) == ("7", size, ceiling)
    assert (task.convert, task.shards, task.excluded) == (True, 2, excluded)
