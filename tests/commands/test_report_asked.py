"""What a report is asked for: which files are read, what is refused before that, and what is written."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cdxmill.commands.reporting import report as module
from cdxmill.commands.reporting.parts import read_part
from cdxmill.commands.reporting.report import (
    find_inputs,
    format_json,
    report_asked,
)
from cdxmill.errors import AbsentError, InputError, OutageError, StoppedError, UsageError
from cdxmill.formats.clusters.manifest import Manifest, ShardEntry, UsedCompressor
from cdxmill.options.reports import Reporting
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage.location import locate
from tests.material.cdx_files import write_plain
from tests.material.clusters import write_raw_cluster

LINE = b'com,a)/%04d 20200101000000 {"url": "http://a.com/", "length": "%d"}'
USED = UsedCompressor("zlib", "1", 6, 0)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the clusters C and D, and the CDX files a.cdxj and b.cdxj."""
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate("CD"):
        write_raw_cluster(tmp_path / name, [LINE % (row + number, 7) for row in range(2)], 1)
    for number, name in enumerate("ab"):
        write_plain(tmp_path / f"{name}.cdxj", [LINE % (row + number, 9) for row in range(3)])
    return tmp_path


def asked(*inputs: str, **options: Any) -> Reporting:
    made = Reporting(inputs, **{"processes": 1, **options})
    made.quiet = True
    return made


def quiet() -> Failures:
    return Failures(printed=False)


def reported(*inputs: str, **options: Any) -> dict[str, Any]:
    return report_asked(asked(*inputs, **options), quiet())


def fails(*_: object, **__: object) -> Any:
    raise AssertionError("it is not called")


@pytest.mark.parametrize(
    ("html", "json_", "outputs"),
    [
        (None, None, []),
        (None, "-", []),
        ("x", None, ["x"]),
        (None, "y", ["y"]),
        ("x", "y", ["y", "x"]),
        ("x", "-", ["x"]),
        ("x", "x", "--html and --json name one file; give two"),
        ("x", "./x", "--html and --json name one file; give two"),
        ("-", None, "--html -: the page is not written to stdout"),
        ("-", "-", "--html -: the page is not written to stdout"),
        ("C", None, "C: is a directory"),
        ("a.cdxj", None, "a.cdxj: already exists"),
        (None, "a.cdxj", "a.cdxj: already exists"),
        (None, "http://h/x", "http:// cannot be written"),
    ],
)
def test_what_is_written(html: str | None, json_: str | None, outputs: Any, here: Path) -> None:
    given = asked("C", html=html, json=json_)
    if isinstance(outputs, str):
        with pytest.raises(UsageError) as found:
            report_asked(given, quiet())
        assert outputs in str(found.value)
        return
    assert [place.text for _, place in module._outputs(given)] == outputs
    report = report_asked(given, quiet())
    if json_ == "y":
        assert json.loads(Path("y").read_bytes()) == json.loads(json.dumps(report))
    if html == "x":
        assert Path("x").read_bytes().lower().startswith(b"<!doctype html>")
    assert sorted(path.name for path in here.iterdir()) == sorted(["C", "D", "a.cdxj", "b.cdxj", *outputs])


@pytest.mark.parametrize("option", ["html", "json"])
def test_an_output_is_replaced_if_that_was_asked_for(option: str) -> None:
    Path("x").write_text("old")
    with pytest.raises(UsageError, match="x: already exists"):
        reported("C", **{option: "x"})
    reported("C", replace=True, **{option: "x"})
    assert Path("x").read_bytes()[:3] != b"old"


def test_what_is_missing_is_said_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise UsageError("report needs more libraries")

    monkeypatch.setattr(module, "find_inputs", fails)
    with pytest.raises(UsageError, match="no input; give files"):
        reported()
    with pytest.raises(UsageError, match=r"a\.cdxj: already exists"):
        reported("C", json="a.cdxj")
    monkeypatch.setattr(module, "public_suffixes", missing)
    with pytest.raises(UsageError, match="report needs more libraries"):
        reported()


def test_json_has_a_line_for_each_part() -> None:
    assert format_json({"a": 1, "b": [{"c": "ä"}]}) == b'{\n"a": 1,\n"b": [{"c": "\\u00e4"}]\n}\n'


@pytest.mark.parametrize(
    ("named", "parts", "with_urls"),
    [
        (["C"], ["C/cdx-00000.gz"], False),
        (["C/cluster.idx"], ["C/cdx-00000.gz"], False),
        (["C", "D"], ["C/cdx-00000.gz", "D/cdx-00000.gz"], True),
        (["a.cdxj"], ["a.cdxj"], True),
        (["b.cdxj", "a.cdxj"], ["b.cdxj", "a.cdxj"], True),
        (["a.cdxj", "C"], ["C/cdx-00000.gz", "a.cdxj"], True),
    ],
)
def test_the_parts_are_in_the_order_of_their_lines(
    named: list[str], parts: list[str], with_urls: bool
) -> None:
    found = find_inputs(named, quiet())
    assert (found.named, [part.path for part in found.parts]) == (named, parts)
    assert {part.with_urls for part in found.parts} == {with_urls}
    assert [part.shard is None for part in found.parts] == [path.endswith(".cdxj") for path in parts]
    clusters = [name.partition("/")[0] for name in named if not name.endswith(".cdxj")]
    assert found.manifests == dict.fromkeys(clusters)
    places = {place.text for place in found.places}
    assert set(parts) <= places
    assert {f"{name}/cluster.idx" for name in clusters} <= places


def test_the_files_of_a_directory_are_read() -> None:
    Path("d").mkdir()
    write_plain(Path("d/x.cdxj"), [LINE % (1, 1)])
    found = find_inputs(["d"], quiet())
    assert [part.path for part in found.parts] == ["d/x.cdxj"]
    assert locate("d/x.cdxj") in found.places


def test_overlays_have_urls_of_the_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    overlay = find_inputs(["D"], quiet()).parts[0].shard
    monkeypatch.setattr(module, "overlay_tasks", lambda *_: [overlay])
    found = find_inputs(["C"], quiet())
    assert [part.path for part in found.parts] == ["C/cdx-00000.gz", "D/cdx-00000.gz"]
    assert all(part.with_urls for part in found.parts)


def test_what_is_neither_a_cluster_nor_a_file_is_refused() -> None:
    Path("empty").mkdir()
    with pytest.raises(UsageError, match="empty"):
        find_inputs(["empty"], quiet())
    with pytest.raises(InputError, match="absent: no input can be read, so there is no report"):
        reported("absent")


def test_findings_in_a_cluster_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("C/cluster.json").write_text("{")
    failures = quiet()
    find_inputs(["C"], failures)
    assert [failure.path for failure in failures.items] == ["C/cluster.json"]

    def outage(files: object, report: Any) -> None:
        report([Failure("C/cluster.json", None, "no answer", is_outage=True)])

    monkeypatch.setattr(module, "read_claims", outage)
    with pytest.raises(StoppedError, match=r"C/cluster\.json: no answer"):
        find_inputs(["C"], quiet())


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (b"a.gz\t7\tis bad\tfetch it\n", ["a.gz@7: is bad; fetch it"]),
        (b"a.gz\t\tis bad\t\n", ["a.gz: is bad"]),
        (b"a.gz\t-1\tis bad\t\n", ["a.gz: is bad"]),
        (b"a.gz\t7\tis bad\nb.gz\t1\tx\ty\tz\n\nodd\n", []),
    ],
)
@pytest.mark.parametrize("directory", ["C", "C/cdx"])
def test_what_a_build_could_not_index_is_told(rows: bytes, found: list[str], directory: str) -> None:
    Path(directory).mkdir(exist_ok=True)
    Path(directory, "failures.tsv").write_bytes(rows)
    assert [str(one) for one in module._earlier_failures(locate("C"))] == found
    assert reported("C")["build_failures"] == {"number": len(found), "first": found}


def test_only_lists_of_a_local_build_are_read() -> None:
    os.mkfifo("C/failures.tsv")
    Path("C/cdx").mkdir()
    Path("other.tsv").write_bytes(b"a.gz\t7\tis bad\tfetch it\n")
    Path("C/cdx/failures.tsv").symlink_to("../../other.tsv")
    assert module._earlier_failures(locate("C")) == []
    assert module._earlier_failures(locate("s3://b/C")) == []


@pytest.mark.parametrize(
    ("named", "is_exact"),
    [
        (["C"], True),
        (["a.cdxj"], True),
        (["a.cdxj", "b.cdxj"], False),
        (["C", "D"], False),
    ],
)
def test_urls_are_exact_in_one_input(named: list[str], is_exact: bool) -> None:
    rows = reported(*named)["by"]["host"]["rows"]
    assert [row["urls"] is not None for row in rows] == [is_exact]


def test_the_shards_of_a_cluster_are_one_sequence(tmp_path: Path) -> None:
    write_raw_cluster(tmp_path / "E", [LINE % (2, 7), LINE % (5, 7)])
    inputs = find_inputs(["C"], quiet())
    inputs.parts.extend(find_inputs(["E"], quiet()).parts)
    found = module.make_report(inputs, asked("C"), quiet())
    assert [row["urls"] for row in found["by"]["host"]["rows"]] == [4]
    assert (found["totals"]["urls"], found["totals"]["captures"]) == (4, 4)


def test_an_empty_cluster_is_exact(tmp_path: Path) -> None:
    write_raw_cluster(tmp_path / "E", [])
    found = reported("E")
    assert (found["totals"]["urls"], found["totals"]["urls_error"], len(found["shards"])) == (0, 0, 1)


def damage(path: str) -> None:
    data = bytearray(Path(path).read_bytes())
    data[20] ^= 255
    Path(path).write_bytes(data)


def test_failures_are_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_EARLIER", 2)
    write_plain(Path("a.cdxj"), [LINE % (1, 9), *[b'com,b)/ 2020 {"mime": }'] * 3])
    damage("C/cdx-00000.gz")
    failures = quiet()
    found = report_asked(asked("a.cdxj", "C"), failures)
    assert (found["format"], found["inputs"]) == (1, ["a.cdxj", "C"])
    assert list(found)[:3] == ["format", "inputs", "totals"]
    assert failures.count == 4
    assert found["failures"] == {"number": 4, "first": [str(one) for one in failures.items[:2]]}
    assert [shard["path"] for shard in found["shards"]] == ["C/cdx-00000.gz", "a.cdxj"]
    assert [shard["captures"] for shard in found["shards"]] == [1, 1]


@pytest.mark.parametrize(
    ("named", "has_report"),
    [
        (["bad.cdxj"], False),
        (["bad.cdxj", "a.cdxj"], True),
        (["E"], True),
        (["empty.cdxj"], False),
        (["head.cdx"], True),
    ],
)
def test_without_a_capture_and_with_failures_there_is_no_report(
    named: list[str], has_report: bool, tmp_path: Path
) -> None:
    write_plain(tmp_path / "bad.cdxj", [b'com,b)/ 2020 {"mime": }'])
    write_plain(tmp_path / "empty.cdxj", [])
    write_plain(tmp_path / "head.cdx", [b" CDX N b a m s k r M S V g"])
    write_raw_cluster(tmp_path / "E", [LINE % (1, 2)])
    damage("E/cdx-00000.gz")
    if has_report:
        assert reported(*named)["totals"]["captures"] in (0, 3)
    else:
        with pytest.raises(
            InputError, match=r"(bad|empty)\.cdxj: no input can be read, so there is no report"
        ):
            reported(*named)


def test_all_inputs_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    for name in ("x", "y"):
        write_plain(tmp_path / f"{name}.cdxj", [b'com,b)/ 2020 {"mime": }'])
    with pytest.raises(InputError, match=r"x\.cdxj, y\.cdxj: no input"):
        reported("x.cdxj", "y.cdxj")


def test_an_outage_stops_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(part: Any) -> Any:
        found = read_part(part)
        found.findings.append(Failure.from_error(OutageError(part.path, "no answer")))
        return found

    monkeypatch.setattr(module, "read_part", read)
    with pytest.raises(StoppedError, match=r"a\.cdxj: no answer"):
        reported("a.cdxj")


def test_parts_may_end_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(work: Any, tasks: Sequence[Any], processes: int, tick: Any) -> Any:
        assert processes == 3
        tick()
        return reversed([(number, work(task)) for number, task in enumerate(tasks)])

    whole = reported("a.cdxj", "b.cdxj", "C")
    monkeypatch.setattr(module, "run_tasks", run)
    assert reported("a.cdxj", "b.cdxj", "C", processes=3) == whole


def test_the_progress_knows_parts_bytes_and_failures() -> None:
    import cdxmill

    found: list[cdxmill.Step] = []
    damage("C/cdx-00000.gz")
    cdxmill.report(["a.cdxj", "C"], processes=1, progress=found.append)
    last = found[-1]
    size = Path("a.cdxj").stat().st_size + Path("C/cdx-00000.gz").stat().st_size
    assert (last.name, last.done, last.total, last.total_bytes, last.failures) == (
        "reading lines",
        2,
        2,
        size,
        1,
    )
    assert last.bytes == size


def test_the_size_is_unknown_if_a_file_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = find_inputs(["a.cdxj", "C"], quiet()).parts
    assert module._size_of(parts) == sum(Path(part.path).stat().st_size for part in parts)

    def absent(_: object) -> int:
        raise AbsentError("a.cdxj", "is not there")

    monkeypatch.setattr(module, "total_size", absent)
    assert module._size_of(parts) == 0


def manifest(lines: int, blocks: int, change: int, shards: int = 1) -> Manifest:
    first = ShardEntry("cdx-00000.gz", 9, lines, blocks, "")
    others = [ShardEntry(f"cdx-{number:05d}.gz", 9, 0, 0, "") for number in range(1, shards)]
    return Manifest((first, *others), 10, USED, "", change)


@pytest.mark.parametrize(
    ("lines", "blocks", "change", "shards", "full"),
    [
        (100, 16, 1, 1, None),
        (100, 17, 1, 1, 10),
        (100, 17, 0, 1, None),
        (100, 17, 1, 2, None),
        (100, 18, 1, 2, 10),
        (101, 17, 1, 1, None),
        (101, 18, 1, 1, 11),
        (90, 14, 1, 1, None),
        (90, 15, 1, 1, 9),
        (0, 1, 3, 1, None),
        (0, 2, 3, 1, 0),
    ],
)
def test_compact_is_advised_if_there_are_many_blocks(
    lines: int, blocks: int, change: int, shards: int, full: int | None
) -> None:
    found = module._cluster_of("C", manifest(lines, blocks, change, shards))
    advice = f"{blocks} blocks, where {full} would do: cdxmill compact C"
    assert found["compact"] == ("" if full is None else advice)
    assert (found["path"], found["lines"], found["changes"]) == ("C", lines, change)


def test_a_cluster_without_a_manifest_has_no_advice() -> None:
    assert reported("C")["clusters"] == [{"path": "C", "lines": None, "changes": None, "compact": ""}]
    assert reported("a.cdxj")["clusters"] == []
