"""The search for what the user named: which names are possible, what is summed up, and which error comes first."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path

import pytest

from cdxmill.errors import InputError, UsageError
from cdxmill.inputs.archives import find_archives
from cdxmill.inputs.cdx_files import cdx_files_of, find_cdx_files
from cdxmill.inputs.named import Input, check_archives, check_name, named_input, skipped_among, without_host
from cdxmill.options.archives import ArchiveInputs
from cdxmill.storage.location import Location
from cdxmill.storage.walk import Listing

from .test_find_archives import Collected


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "label", "told"),
    [
        ("", "list:3: ", "list:3: : the name is empty"),
        ("a\0b", "", "a\0b: the name has a NUL character"),
        ("http://h/a\0b", "x", "x: the name has a NUL character"),
        (f"d/{'a' * 256}", "", f"d/{'a' * 253}...: a name in the path has more than 255 bytes"),
        (f"{'ä' * 128}/b", "", f"{'ä' * 128}/b: a name in the path has more than 255 bytes"),
        ("a" * 256, "x" * 254, f"{'x' * 254}: a name in the path has more than 255 bytes"),
        ("a" * 256, "x" * 255, f"{'x' * 255}: a name in the path has more than 255 bytes"),
        ("a" * 256, "x" * 256, f"{'x' * 255}...: a name in the path has more than 255 bytes"),
    ],
)
def test_names_that_no_file_can_have_are_reported_with_a_short_label(
    path: str, label: str, told: str
) -> None:
    with pytest.raises(InputError) as caught:
        check_name(path, label)
    assert str(caught.value) == f"{told}; check the name"


@pytest.mark.parametrize("path", ["a" * 255, f"{'a' * 200}/{'b' * 200}", "ä" * 127, f"http://h/{'a' * 999}"])
def test_other_names_are_possible(path: str) -> None:
    check_name(path)


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        (1, "1 file skipped: 1 .k00"),
        (12, "12 files skipped: 1 .k00, {}1 .k11"),
        (13, "13 files skipped: 1 .k00, {}1 .k11, 1 of 1 other kind"),
        (15, "15 files skipped: 1 .k00, {}1 .k11, 3 of 3 other kinds"),
    ],
)
def test_of_many_kinds_of_skipped_files_12_are_named(kinds: int, told: str) -> None:
    middle = "".join(f"1 .k{number:02d}, " for number in range(1, 11))
    assert skipped_among(f"a.k{number:02d}" for number in range(kinds)) == told.format(middle)


def test_the_most_frequent_kind_is_named_first_and_own_records_are_none() -> None:
    assert skipped_among(["a.b", "a.c", "d.c", "x/failures.tsv"]) == "3 files skipped: 2 .c, 1 .b"
    assert skipped_among([]) == skipped_among(["failures.tsv"]) == ""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cdx-00000.gz", "shard of a cluster"),
        ("cdx-0000.gz", ".gz"),
        ("cdx-00000-12.gz", "shard of a cluster"),
        ("a.cdx.bz2", ".cdx.bz2"),
        ("a.b c", "without ending"),
        ("a.", "without ending"),
        ("a.gz", ".gz"),
        ("a.abcdefghijkl", ".abcdefghijkl"),
        ("a.abcdefghijklm", "without ending"),
    ],
)
def test_the_kind_of_a_skipped_file_is_its_ending(name: str, kind: str) -> None:
    assert skipped_among([name]) == f"1 file skipped: 1 {kind}"


def test_if_nothing_can_be_listed_the_last_error_is_raised_and_the_others_are_reported() -> None:
    failures = Collected()
    with pytest.raises(InputError, match="the name is empty"):
        find_archives(ArchiveInputs(["a\0", "b\0", ""]), failures)
    assert failures.told == [(name, "the name has a NUL character") for name in ("a\0", "b\0")]


def test_errors_are_reported_before_inputs_that_have_no_file() -> None:
    Path("empty").mkdir()
    Path("a.cdxj").touch()
    failures = Collected()
    assert find_cdx_files(["empty", "x\0", "*.none", "a.cdxj"], failures) == ["a.cdxj"]
    assert failures.told == [
        ("x\0", "the name has a NUL character"),
        ("empty", "no CDX files found"),
        ("*.none", "no file matches"),
    ]
    assert failures.notes == []


def test_the_inputs_of_a_job_are_all_listed_or_it_does_not_start(
    capfd: pytest.CaptureFixture[str],
) -> None:
    Path("a.cdxj").touch()
    assert cdx_files_of(["a.cdxj"]) == ["a.cdxj"]
    with pytest.raises(UsageError, match="some inputs cannot be listed; correct this and run the job again"):
        cdx_files_of(["a.cdxj", "*.none"])
    assert "*.none: no file matches" in capfd.readouterr().err


@pytest.mark.parametrize("named", ["d/a.warc", "file://{}/d/a.warc", "d", "./d/", "d/*"])
def test_a_file_is_found_by_its_path_its_url_its_directory_or_a_pattern(named: str, directory: Path) -> None:
    Path("d").mkdir()
    Path("d/a.warc").touch()
    (found,) = find_archives(ArchiveInputs([named.format(directory)]), Collected())
    assert found.filename == "a.warc"
    assert Path(found.path.removeprefix("file://")).resolve() == directory / "d/a.warc"
    assert not found.is_listed
    assert found.manifest == ""


@pytest.mark.parametrize("named", ["http://h/a*.warc", "https://h/[x]/a.warc", "http://h/d/", "http://h/d"])
def test_a_web_server_is_not_searched_so_its_url_is_a_file(named: str) -> None:
    (found,) = find_archives(ArchiveInputs([named]), Collected())
    assert found.path == found.label == named


def test_an_input_is_the_same_after_its_way_to_a_task() -> None:
    listed = Input(named_input("x/a.warc", "a.warc").location, "a.warc", "li:st:7: x/a.warc", "n")
    for one in (listed, named_input("https://h/a.warc", "a.warc")):
        assert Input.of_fields(one.to_fields()) == one
    assert (listed.is_listed, listed.manifest) == (True, "li:st")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://h/x/a.warc?y=/z#w", "x/a.warc"),
        ("HTTP://h/a.warc?y", "a.warc"),
        ("s3://b/x/a?b#c.warc", "x/a?b#c.warc"),
        ("hdfs:///x/a.warc", "x/a.warc"),
        ("x/a?b#c.warc", "x/a?b#c.warc"),
        ("https://h/x#w?y", "x"),
    ],
)
def test_the_name_of_a_url_has_no_host_and_no_query(url: str, name: str) -> None:
    assert without_host(url) == name


def test_a_local_name_with_special_characters_may_be_a_pattern_or_a_file() -> None:
    for name in ("[a].warc", "a.warc"):
        Path(name).touch()
    assert [one.path for one in find_archives(ArchiveInputs(["[a].warc"]), Collected())] == ["[a].warc"]
    Path("[a].warc").unlink()
    assert [one.path for one in find_archives(ArchiveInputs(["[a].warc"]), Collected())] == ["a.warc"]
    Path("[a].warc").symlink_to("nowhere")
    assert [one.path for one in find_archives(ArchiveInputs(["[a].warc"]), Collected())] == ["[a].warc"]


def test_files_come_in_the_order_of_their_names_and_what_is_skipped_is_counted() -> None:
    for name in (
        ".work/d/b.warc",
        ".work/d/a.warc",
        ".work/d/.work/c.warc",
        ".work/d/x.har",
        ".work/d/failures.tsv",
    ):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    failures = Collected()
    found = find_archives(ArchiveInputs([".work/d"]), failures)
    assert [one.filename for one in found] == ["a.warc", "b.warc"], (
        "the user has named a folder of unfinished work"
    )
    assert failures.notes == [".work/d: note: 2 files skipped: 1 .har, 1 in .work"]
    failures = Collected()
    assert [one.filename for one in find_archives(ArchiveInputs([".work/d/*.warc"]), failures)] == [
        "a.warc",
        "b.warc",
    ]
    assert (failures.notes, failures.told) == ([], [])
    Path(".work/d/x.har").unlink()
    Path(".work/d/.work/c.warc").unlink()
    find_archives(ArchiveInputs([".work/d"]), failures)
    assert failures.notes == []


@pytest.mark.parametrize(
    ("named", "failed", "noted"),
    [
        ("d", ["d/p.warc"], ["d: note: 2 files skipped: 1 link to a directory that was searched already, 1 socket, pipe or device"]),
        ("d/*", ["d/p.warc", "d/q"], ["d/*: note: 1 file skipped: 1 directory"]),
        ("d/**", ["d/p.warc", "d/q"], ["d/**: note: 1 file skipped: 1 directory"]),
    ],
)  # fmt: skip
def test_what_is_no_file_is_a_failure_if_it_was_meant(
    named: str, failed: list[str], noted: list[str]
) -> None:
    Path("d").mkdir()
    Path("d/a.warc").touch()
    for name in ("d/p.warc", "d/q"):
        os.mkfifo(name)
    Path("d/again.warc").symlink_to(".")
    failures = Collected()
    assert [one.path for one in find_archives(ArchiveInputs([named]), failures)] == ["d/a.warc"]
    assert [path for path, _ in failures.told] == failed
    assert failures.notes == noted


LISTED = Listing(files=["s3://b/d/x/b.warc", "s3://b/d/a.warc"])


@pytest.mark.parametrize(
    ("named", "asked", "found"),
    [
        ("s3://b/d/", "below", [("s3://b/d/a.warc", "a.warc"), ("s3://b/d/x/b.warc", "x/b.warc")]),
        ("s3://b/d", "below", [("s3://b/d/a.warc", "a.warc"), ("s3://b/d/x/b.warc", "x/b.warc")]),
        ("s3://b/d/*.warc", "like", [("s3://b/d/a.warc", "a.warc"), ("s3://b/d/x/b.warc", "b.warc")]),
        ("s3://b/d/a.warc", "", [("s3://b/d/a.warc", "a.warc")]),
        ("s3://b/is[there].warc", "exists", [("s3://b/is[there].warc", "is[there].warc")]),
        ("s3://b/none", "below", [("s3://b/none", "none")]),
        ("s3://b/none/", "below", []),
    ],
)
def test_a_url_is_a_file_a_directory_or_a_pattern(
    named: str, asked: str, found: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def listing(way: str, url: str) -> Listing:
        seen.append(way)
        assert url == named
        return Listing() if "none" in url else LISTED

    def exists(place: Location) -> bool:
        seen.append("exists")
        return "there" in place.text

    for way in ("below", "like"):
        monkeypatch.setattr(f"cdxmill.inputs.named.files_{way}", partial(listing, way))
    monkeypatch.setattr(Location, "exists", exists)
    Path("own.warc").touch()
    archives = find_archives(ArchiveInputs([named, "own.warc"]), failures := Collected())
    assert [(one.path, one.filename) for one in archives] == [*found, ("own.warc", "own.warc")]
    assert seen == {"": [], "exists": ["exists"], "like": ["exists", "like"], "below": ["below"]}[asked]
    assert failures.told == ([] if found else [(named, "no archives found")])


@pytest.mark.parametrize(
    ("named", "told"),
    [
        (["*.a"], "*.a"),
        (["*.a", "*.b", "*.c"], "*.a, *.b, *.c"),
        (["*.a", "*.b", "*.c", "*.d"], "*.a, *.b, *.c and 1 more"),
    ],
)
def test_of_many_inputs_without_files_three_are_named(named: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=rf"^no archives found in {re.escape(told)}; in directories"):
        find_archives(ArchiveInputs(named), Collected())


def test_a_command_without_archives_is_refused() -> None:
    check_archives([named_input("a.warc", "a.warc")])
    with pytest.raises(UsageError, match="no archives found; check the paths"):
        check_archives([])


def test_an_input_whose_name_is_like_an_entry_of_a_manifest_is_not_listed() -> None:
    assert named_input("list:1: a.warc", "a.warc").manifest == ""
