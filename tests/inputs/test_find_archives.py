"""`find_archives`: names, failures and notes for what a user names, and for what is in a WACZ."""

from __future__ import annotations

import codecs
import gzip
from pathlib import Path

import pytest

from cdxmill.errors import UsageError
from cdxmill.inputs.archives import archives_of, find_archives
from cdxmill.inputs.pipes import Pipes
from cdxmill.options.archives import ArchiveInputs, NamedInputs
from cdxmill.running.failures import Failure, Failures

from ..material.wacz_files import make_wacz
from ..storage.range_server import serving
from .test_pipes import named_pipe

WARC = b"WARC/1.0\r\n"


class Collected(Failures):
    """Keeps failures and notes."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[Failure] = []
        self.notes: list[str] = []

    def report(self, failure: Failure) -> None:
        super().report(failure)
        self.failures.append(failure)

    def note(self, text: str) -> None:
        self.notes.append(text)

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(one.path, one.reason) for one in self.failures]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`d/a.warc`, and WACZ files: good.wacz with an archive, bad.wacz which is none."""
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    Path("d/a.warc").write_bytes(WARC)
    Path("good.wacz").write_bytes(make_wacz({"archive/b.warc": WARC, "datapackage.json": b"{}"}))
    Path("bad.wacz").write_bytes(b"no zip")
    return tmp_path


def names(*inputs: str, failures: Failures | None = None, **asked: str) -> list[str]:
    """The names in index lines."""
    found = find_archives(NamedInputs(list(inputs), **asked), failures or Failures())
    return [one.filename for one in found]


def test_names_are_relative_to_the_directory_of_the_option(directory: Path) -> None:
    assert names("d/a.warc") == ["a.warc"]
    assert names("d/a.warc", dir_root=".") == ["d/a.warc"]
    assert names("d", dir_root="d") == ["a.warc"]
    assert names(f"{directory}/d", dir_root=f"{directory}/other") == ["../d/a.warc"]
    urls = ("http://h/x/a.warc", "s3://b/x/a.warc")
    assert names(*urls, dir_root=".") == names(*urls)


def test_a_pipe_keeps_its_name_whatever_directory_names_are_relative_to() -> None:
    with named_pipe(Path("pipe.warc"), WARC), Pipes(Failures(), quiet=True) as pipes:
        found = find_archives(NamedInputs(["pipe.warc", "d/a.warc"], dir_root="."), Failures(), pipes)
        assert [one.filename for one in found] == ["pipe.warc", "d/a.warc"]


def test_standard_input_is_an_archive_or_the_manifest() -> None:
    with (
        pytest.raises(UsageError, match=r"^- can be an archive or the manifest, not both$"),
        Pipes(Failures(), quiet=True) as pipes,
    ):
        find_archives(ArchiveInputs(["d", "-"], manifest="-"), Failures(), pipes)


def test_nothing_named_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match=r"no input; give archives, directories, or a manifest"):
        find_archives(ArchiveInputs([]), Failures())
    Path("list").write_text("# nothing\n\n")
    with pytest.raises(UsageError, match=r"no archives found in list"):
        find_archives(ArchiveInputs(manifest="list"), Failures())


def test_each_file_of_a_wacz_is_an_archive_or_is_reported() -> None:
    files = {
        "archive/b.warc": WARC,
        "archive/c.warc.gz": b"",
        "archive/x.har": b"",
        "archive/y.har": b"",
        "pages/pages.jsonl": b"",
        "archive/in.wacz": b"",
        "archive/../d.warc": b"",
        "archive//e.warc": b"",
        "./f.warc": b"",
    }
    Path("w.wacz").write_bytes(make_wacz(files))
    failures = Collected()
    assert names("w.wacz", failures=failures) == ["b.warc", "c.warc.gz"]
    assert failures.told == [
        ("w.wacz/archive/in.wacz", "is a WACZ in a WACZ"),
        *(("w.wacz", f"has a file with the name {name}") for name in ("archive/../d.warc", "archive//e.warc", "./f.warc")),
    ]  # fmt: skip
    assert failures.notes == ["w.wacz: note: 2 files skipped: 2 .har"]
    assert names("w.wacz", "d", failures=Failures()) == [
        "w.wacz/archive/b.warc",
        "w.wacz/archive/c.warc.gz",
        "a.warc",
    ]


def test_a_wacz_without_archives_is_a_failure() -> None:
    Path("empty.wacz").write_bytes(make_wacz({"datapackage.json": b"{}"}))
    failures = Collected()
    assert names("d", "empty.wacz", failures=failures) == ["a.warc"]
    assert failures.told == [("empty.wacz", "has no archives")]
    Path("only.wacz").write_bytes(make_wacz({"archive/in.wacz": b""}))
    failures = Collected()
    assert names("d", "only.wacz", failures=failures) == ["a.warc"]
    assert failures.told == [("only.wacz/archive/in.wacz", "is a WACZ in a WACZ")]


def test_a_wacz_that_cannot_be_opened_is_a_failure_of_the_search_or_of_the_caller() -> None:
    asked = ArchiveInputs(["good.wacz", "bad.wacz"])
    failures, unopened = Collected(), Collected()
    found = find_archives(asked, failures, unopened=unopened)
    assert [one.filename for one in found] == ["good.wacz/archive/b.warc"]
    assert (failures.told, [path for path, _ in unopened.told]) == ([], ["bad.wacz"])
    failures = Collected()
    assert len(find_archives(asked, failures)) == 1
    assert [path for path, _ in failures.told] == ["bad.wacz"]
    found = find_archives(asked, failures, open_all=None)
    assert [one.filename for one in found] == ["good.wacz", "bad.wacz"], "a task opens them"


@pytest.mark.parametrize("is_opened", [True, False])
def test_the_archives_of_a_job_are_those_of_all_manifests(is_opened: bool) -> None:
    Path("one").write_text("d/a.warc\n")
    Path("two").write_text("good.wacz\n")
    unopened = Collected() if is_opened else None
    found = archives_of(["one", "two"], None, unopened)
    second = "good.wacz/archive/b.warc" if is_opened else "good.wacz"
    assert [one.filename for one in found] == ["d/a.warc", second]


def test_a_file_in_a_wacz_that_is_listed_too_is_wrong_usage() -> None:
    Path("one").write_text("good.wacz/archive/b.warc\nd/a.warc\n")
    Path("two").write_text("good.wacz\n")
    assert len(archives_of(["one"], None)) == 2
    with pytest.raises(
        UsageError, match=r"^one:1: good\.wacz/archive/b\.warc: is listed twice, because its WACZ"
    ):
        archives_of(["one", "two"], None)


@pytest.mark.parametrize(
    ("line", "path", "filename"),
    [
        ("x/a.warc", "root/x/a.warc", "x/a.warc"),
        ("/x/a.warc", "/x/a.warc", "a.warc"),
        ("https://h/x/a.warc?y=1", "https://h/x/a.warc?y=1", "x/a.warc"),
        ("s3://b/x/a.warc", "s3://b/x/a.warc", "x/a.warc"),
        ("title\tx/a.warc\t\t ", "root/x/a.warc", "x/a.warc"),
        ("  x/a.warc  \r", "root/x/a.warc", "x/a.warc"),
    ],
)
def test_an_entry_of_a_manifest_has_a_place_a_name_and_a_line(line: str, path: str, filename: str) -> None:
    Path("list").write_text(f"# x\n\n{line}\n \t \n")
    (found,) = find_archives(ArchiveInputs(manifest="list", root="root"), Failures())
    assert (found.path, found.filename, found.label) == (path, filename, f"list:3: {path}")
    assert (found.is_listed, found.manifest, found.name) == (True, "list", line.strip().split("\t")[-1] if "title" not in line else "x/a.warc")  # fmt: skip


def packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    ("data", "is_archive"),
    [
        (b"WARC/1.0\r\nx", True),
        (b"WARC/\n", True),
        (b"WARC", False),
        (b"filedesc://a.arc 0.0.0.0 2020\n", True),
        (b"filedesc:/a.arc\n", False),
        (b"\x28\xb5\x2f\xfd\x20\x00", True),
        (b"\x28\xb5\x2f", False),
        (b"x WARC/1.0\r\n", False),
        (packed(b"WARC/1.0\r\nx"), True),
        (packed(b"filedesc://a.arc 0.0.0.0 2020\n"), True),
        (packed(b"WARC/1.0\r\nx")[:24], True),
        (packed(b"d/a.warc\n"), False),
        (b"\x1f\x8cd/a.warc\n", False),
    ],
)
def test_an_archive_is_no_manifest(data: bytes, is_archive: bool) -> None:
    Path("list").write_bytes(data)
    if is_archive:
        with pytest.raises(UsageError, match=r"^list is an archive, not a manifest, which is a text"):
            find_archives(ArchiveInputs(manifest="list"), Failures())
    else:
        assert len(find_archives(ArchiveInputs(manifest="list"), Failures())) == 1


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (codecs.BOM_UTF16_LE + "d/ä.warc\n".encode("utf-16-le"), "d/ä.warc"),
        (codecs.BOM_UTF16_BE + "d/ä.warc\n".encode("utf-16-be"), "d/ä.warc"),
        (codecs.BOM_UTF16_LE + "d/a.warc\n".encode("utf-16-le") + b"x", "d/a.warc"),
        (codecs.BOM_UTF8 + "d/ä.warc\n".encode(), "d/ä.warc"),
        (b"d/\xff.warc\n", "d/\udcff.warc"),
        (packed(b"d/a.warc\n") + packed(b"#\n"), "d/a.warc"),
    ],
)
def test_a_manifest_may_have_any_encoding(data: bytes, path: str) -> None:
    Path("list").write_bytes(data)
    assert find_archives(ArchiveInputs(manifest="list"), Failures())[0].path == path


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent", "No such file or directory"),
        ("d", "Is a directory"),
        ("cut.gz", "Compressed file ended before the end-of-stream marker was reached"),
        ("bad.gz", "Error -3 while decompressing data: unknown compression method"),
        ("a\0b", "embedded null byte"),
        ("ftp://h/list", r".+"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_wrong_usage_with_its_reason(name: str, reason: str) -> None:
    Path("cut.gz").write_bytes(packed(b"d/a.warc\n" * 99)[:-9])
    Path("bad.gz").write_bytes(b"\x1f\x8b\x07" + bytes(30))
    with pytest.raises(UsageError, match=rf"^the manifest {name} cannot be read \({reason}\); check it$"):
        find_archives(ArchiveInputs(manifest=name), Failures())


def test_a_manifest_may_be_on_a_server_in_a_file_url_or_on_standard_input(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("list").write_text("d/a.warc\n")
    with serving() as server:
        server.add("/list", b"d/a.warc\n")
        for name in (f"{server.url}/list", (directory / "list").as_uri(), "list"):
            assert [one.path for one in find_archives(ArchiveInputs(manifest=name), Failures())] == [
                "d/a.warc"
            ]
        with pytest.raises(UsageError, match=rf"^the manifest {server.url}/no cannot be read \((?!http)"):
            find_archives(ArchiveInputs(manifest=f"{server.url}/no"), Failures())
    with Path("list").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert names("d", manifest="-") == ["a.warc", "d/a.warc"]
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UsageError, match=r"no archives found in -; "):
        find_archives(ArchiveInputs(manifest="-"), Failures())


def test_a_dictionary_that_is_named_is_read_before_anything_is_searched() -> None:
    with pytest.raises(UsageError, match=r"^--dictionary: absent: cannot be read"):
        find_archives(ArchiveInputs(["d"], dictionary="absent"), Failures())
