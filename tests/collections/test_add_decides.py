"""What `add` decides: which inputs are new, which archives it lists, whether lines become an overlay, and when it compacts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.cluster.change import Change
from cdxmill.commands.collections import add as module
from cdxmill.commands.collections import add_lines as lines_module
from cdxmill.commands.collections.identity import Known, KnownArchive
from cdxmill.commands.collections.other_clusters import OtherCluster
from cdxmill.commands.collections.summary import MOST_OVERLAYS, ChangeSummary
from cdxmill.formats.clusters.manifest import Manifest, ShardEntry, UsedCompressor
from cdxmill.formats.clusters.zipnum import BlockRef
from cdxmill.inputs.cdx_files import CdxSource
from cdxmill.options.collections import Adding, Compacting
from cdxmill.running.failures import Failures
from cdxmill.stages.lines.sort_lines import LineSorter
from cdxmill.stages.zipnum.change_shard import Changes
from cdxmill.storage.location import Location
from cdxmill.storage.scratch import Scratch


def manifest(lines: int = 9, blocks: int = 3, overlays: int = 0, shards: int = 1) -> Manifest:
    files = tuple(ShardEntry(f"cdx-{number:05d}.gz", 9, lines, blocks, "") for number in range(shards))
    young = tuple(ShardEntry(f"overlay-{number:05d}-1.gz", 9, 1, 1, "") for number in range(overlays))
    return Manifest(files, 3, UsedCompressor("zlib-ng", "2", 5, 0), "", overlays=young)


def inputs(
    places: dict[str, list[str]], listed: dict[str, list[str]], paths: int = 0, *clusters: OtherCluster
) -> Any:
    return module._Inputs([str(number) for number in range(paths)], list(clusters), places, listed)


A, B = {"a": ["/1/a"]}, {"a": ["/2/a"]}


@pytest.mark.parametrize(
    ("listed", "places", "content"),
    [
        ({}, {}, None),
        (A, {}, None),
        (A, A, None),
        ({}, A, b"a\t/1/a\n"),
        (A, B, b"a\t/1/a\t/2/a\n"),
        (A, {"a": ["/1/a", "/2/a"]}, b"a\t/1/a\t/2/a\n"),
        ({"a": ["/1/a", "/2/a"]}, A, None),
        (A, {"b": ["/1/b"]}, b"a\t/1/a\nb\t/1/b\n"),
        (A, {"b": []}, None),
    ],
)
def test_archives_are_listed_if_one_of_their_places_is_new(
    listed: dict[str, list[str]], places: dict[str, list[str]], content: bytes | None
) -> None:
    assert module._files(listed, places) == ({} if content is None else {"archives.tsv": content})


@pytest.mark.parametrize(
    ("known", "listed", "places", "is_other"),
    [
        (Known.NOTHING, A, B, True),
        (Known.NOTHING, A, A, False),
        (Known.NOTHING, A, {"a": ["/2/a", "/1/a"]}, False),
        (Known.NOTHING, {}, B, False),
        (Known.NOTHING, A, {}, False),
        (Known.NOTHING, {"b": ["/1/b"]}, B, False),
        (Known.NOTHING, {"a": []}, B, False),
        (Known.SOME, A, B, False),
        (Known.OTHER_NAME, A, B, False),
        (Known.SOME_OTHER_NAME, A, B, False),
    ],
)
def test_an_archive_of_the_same_name_is_another_one_if_nothing_of_it_is_there_and_its_place_is_another(
    known: Known, listed: dict[str, list[str]], places: dict[str, list[str]], is_other: bool
) -> None:
    assert module._is_other("a", known, inputs(places, listed)) is is_other


def known(*found: tuple[str, Known]) -> list[KnownArchive]:
    return [KnownArchive(name, one, "o" if "OTHER" in one.name else "") for name, one in found]


COPY, NEW, SOME, PART = Known.OTHER_NAME, Known.NOTHING, Known.SOME, Known.SOME_OTHER_NAME
IS_COPY = "a: has the records of o, which is in the cluster, so it was not added; use --again to add it under this name, too"
IS_OTHER = "/2/a: the cluster has another archive of this name, /1/a, so it was not added; use --dir-root to give it another name"
IS_PART = "b: note: some of its records are in the cluster as records of o, too"


@pytest.mark.parametrize(
    ("found", "again", "is_new", "told", "left"),
    [
        ([], False, True, [], "abc"),
        ([("b", NEW)], False, True, [], "abc"),
        ([("a", NEW), ("b", NEW)], False, False, [IS_OTHER], "bc"),
        ([("a", NEW)], True, False, [IS_OTHER], "bc"),
        ([("a", SOME)], False, True, [], "abc"),
        ([("a", COPY)], False, False, [IS_COPY], "bc"),
        ([("a", COPY)], True, True, [], "abc"),
        ([("a", COPY), ("b", COPY)], False, False, [IS_COPY], "c"),
        ([("a", COPY), ("b", NEW)], False, True, [], "abc"),
        ([("b", PART)], False, True, [IS_PART], "abc"),
        ([("b", PART)], True, True, [], "abc"),
        ([("b", PART), ("a", NEW)], False, False, [IS_OTHER], "bc"),
    ],
)
def test_what_the_cluster_knows_says_whether_a_file_is_added(
    found: list[tuple[str, Known]], again: bool, is_new: bool, told: list[str], left: str
) -> None:
    """A copy is refused unless it is asked for, and another archive of a known name always: lines have its name alone."""
    lines: list[str] = []
    failures = Failures(write=lines.append)
    given = inputs({**B, "b": ["/2/b"], "c": ["/2/c"]}, A)
    assert module._is_new(known(*found), given, again, failures) is is_new
    assert (lines, "".join(given.places)) == (told, left)
    assert failures.count == (0 if is_new else 1)


@pytest.mark.parametrize(
    ("found", "is_unknown"),
    [
        ([], False),
        ([("a", NEW)], True),
        ([("a", NEW), ("b", COPY)], True),
        ([("a", NEW), ("b", SOME)], False),
        ([("a", PART)], False),
    ],
)
def test_lines_are_looked_up_unless_none_of_them_can_be_there(
    found: list[tuple[str, Known]], is_unknown: bool
) -> None:
    assert module._is_unknown(known(*found)) is is_unknown


def source(path: str, is_empty: bool = False) -> CdxSource:
    return CdxSource(Location(path), 0, 0, None, is_empty)


def test_a_file_is_alone_and_the_shards_of_a_cluster_are_together() -> None:
    """An empty text lists nothing. An empty gzip file is truncated, which is reported."""
    found = [source("a"), source("b.cdxj", True), source("c.cdxj.gz", True), *map(source, ["d0", "d1", "e0"])]
    clusters = [
        OtherCluster(Location(f"/none/{name}"), manifest(shards=number))
        for name, number in (("d", 2), ("e", 1))
    ]
    groups = list(module._groups(found, inputs({}, {}, 3, *clusters)))
    assert [[one.path for one in group] for group, _ in groups] == [
        ["a"],
        [],
        ["c.cdxj.gz"],
        ["d0", "d1"],
        ["e0"],
    ]
    assert all(not list(names) for _, names in groups)


def test_the_archives_of_a_cluster_are_those_of_its_list(tmp_path: Path) -> None:
    (tmp_path / "archives.tsv").write_text("a\t/1/a\t/2/a\nb\t/1/b\n")
    listed = {"a": ["/1/a", "/2/a"], "b": ["/1/b"]}
    place = Location(str(tmp_path))
    assert module._listed(place) == listed
    assert module._listed(place / "none") == {}
    one = OtherCluster(place, manifest(shards=1))
    ((_, names),) = module._groups([source("a")], inputs({}, {}, 0, one))
    given = inputs(dict(listed), {})
    module._unlist(["b", "absent"], given)
    assert (list(names), list(given.places)) == (["a", "b"], ["a"])


@pytest.mark.parametrize(
    ("overlays", "overlay", "mode", "is_compacted"),
    [
        (MOST_OVERLAYS, "why", None, False),
        (MOST_OVERLAYS + 1, "why", None, True),
        (MOST_OVERLAYS + 1, "why", "overlay", False),
        (MOST_OVERLAYS + 1, "", None, False),
    ],
)
def test_many_overlays_are_compacted_unless_the_user_asked_for_one(
    overlays: int, overlay: str, mode: str | None, is_compacted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Adding("C", ["x"], cdx=True, mode=mode, keep_old=7, processes=3)
    asked.quiet = True
    summary = ChangeSummary(Changes(added=1), 0, 1, 2, manifest(overlays=overlays), overlay=overlay)
    seen: list[tuple[object, ...]] = []

    def compact(one: Compacting, failures: Failures) -> SimpleNamespace:
        seen.append((one.cluster, one.keep_old, one.processes, one.quiet))
        return SimpleNamespace(manifest=manifest(lines=10))

    monkeypatch.setattr(module, "compact", compact)
    told: list[str] = []
    found = module._compacted(summary, asked, Failures(write=told.append))
    assert seen == [("C", 7, 3, True)] * is_compacted
    assert found == (summary._replace(manifest=manifest(lines=10)) if is_compacted else summary)
    note = f"C: note: has {overlays} overlays, more than {MOST_OVERLAYS}, so it is compacted"
    assert told == [note] * is_compacted


KEYS = [b"b", b"c", b"d", b"d", b"h"]
"""The first keys of the blocks of a cluster with 5 of them."""


def cluster(monkeypatch: pytest.MonkeyPatch, own: int = 10, blocks: int = 5) -> Change:
    """A cluster of two shards with `blocks`, whose parts are not read."""
    shards = {"cdx-00000.gz": KEYS[:3], "cdx-00001.gz": KEYS[3:]}
    monkeypatch.setattr(
        lines_module,
        "blocks_of",
        lambda place, name: [BlockRef(key, name.encode(), 0, 1) for key in shards[name]],
    )
    one = manifest(lines=own, blocks=3, shards=2)
    few = one.shards[1]._replace(lines=0, blocks=blocks - 3)
    return Change(Location("/C"), one._replace(shards=(one.shards[0], few)), [b"f"], 1)


def runs(tmp_path: Path, lines: Sequence[bytes]) -> tuple[list[Any], Scratch]:
    scratch = Scratch(tmp_path / "work")
    sorter = LineSorter(scratch.create, "new")
    sorter.add(list(lines))
    return (sorter.finish() if lines else []), scratch


@pytest.mark.parametrize(
    ("lines", "touched"),
    [
        ([], 0),
        ([b"a 1"], 1),
        ([b"b 1"], 1),
        ([b"a 1", b"b 1"], 1),
        ([b"a 1", b"c 1"], 2),
        ([b"d 1"], 1),
        ([b"a 1", b"e 1"], 2),
        ([b"c 1", b"d 1", b"e 1", b"f 1"], 2),
        ([b"z 1"], 1),
        ([b"a 1", b"c 1", b"d 1", b"h 1", b"i 1"], 4),
    ],
)
def test_the_blocks_in_whose_range_lines_come_would_change(
    lines: list[bytes], touched: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = cluster(monkeypatch)
    found, scratch = runs(tmp_path, lines)
    assert lines_module._touched(change, found, scratch) == touched


@pytest.mark.parametrize(
    ("own", "blocks", "lines", "mode", "why"),
    [
        (10, 5, [b"a 1", b"c 1", b"d 1"], None, "3 of 5 blocks would change"),
        (10, 5, [b"a 1", b"d 1"], None, ""),
        (10, 6, [b"a 1", b"c 1", b"d 1"], None, ""),
        (9, 5, [b"a 1", b"c 1", b"d 1"], None, ""),
        (11, 5, [b"a 1", b"c 1", b"d 1"], None, "3 of 5 blocks would change"),
        (10, 5, [], None, ""),
        (9, 5, [b"a 1"], "overlay", "--mode overlay"),
        (9, 5, [], "overlay", "--mode overlay"),
        (10, 5, [b"a 1", b"c 1", b"d 1"], "rewrite", ""),
    ],
)
def test_lines_become_an_overlay_if_more_than_half_of_the_blocks_of_a_large_cluster_would_change(
    own: int,
    blocks: int,
    lines: list[bytes],
    mode: str | None,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines_module, "LARGE", 10)
    change = cluster(monkeypatch, own, blocks)
    found, scratch = runs(tmp_path, lines)
    assert lines_module._why_overlay(change, found, mode, scratch) == why


def test_a_cluster_at_a_url_that_cannot_be_changed_is_a_file_of_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is not asked for a cluster.json."""
    monkeypatch.setattr(Location, "exists", lambda place: pytest.fail("it is asked for"))
    monkeypatch.setattr(module, "find_cdx_files", lambda names, failures: list(names))
    name = "https://a.example/D"
    assert module._named([name], Failures(printed=False)) == ([name], [])
