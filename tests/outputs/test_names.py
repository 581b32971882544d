"""Names of outputs: different archives never share one in a build, in any order of runs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.errors import UsageError
from cdxmill.formats.own_records import TABLE, format_row, parse_row
from cdxmill.inputs.named import Input
from cdxmill.inputs.pipes import NO_NAME
from cdxmill.outputs.names import (
    cdx_names,
    check_archives_stay,
    check_index_names,
    check_inputs_stay,
    identity,
    is_one_file,
    output_file,
    output_name,
    output_names,
    recompressed_name,
    unique_names,
    writing,
)
from cdxmill.storage.location import Location

from ..material.wacz_files import make_wacz


def archive(path: str) -> Input:
    return Input(Location(path), "w.warc.gz", path)


def test_archives_with_one_base_name_get_different_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = [
        "a/w.warc.gz",
        "../a/w.warc.gz",
        "/a/w.warc.gz",
        "http://h1/w.warc.gz",
        "http://h2/w.warc.gz",
        "http://h2/w.warc.gz?version=2",
        "https://h2/w.warc.gz",
        "s3://one/w.warc.gz",
        "s3://two/w.warc.gz",
        "s3://two//w.warc.gz",
        "hdfs:///w.warc.gz",
    ]
    names = unique_names([archive(path) for path in paths])
    assert len(set(names.values())) == len(paths)
    assert all(name.startswith("w.warc.gz-") and name.endswith(".cdx.gz") for name in names.values())
    assert names == {one: name for path in paths for one, name in unique_names([archive(path)]).items()}


def test_one_archive_in_several_spellings_is_taken_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spellings = ["w.warc.gz", "./w.warc.gz", "x/../w.warc.gz", f"{tmp_path}/w.warc.gz"]
    spellings.append((tmp_path / "w.warc.gz").as_uri())
    assert list(unique_names(list(map(archive, spellings)))) == [archive("w.warc.gz")]
    assert len(unique_names([archive("s3://b/w.warc.gz"), archive("s3a://b/w.warc.gz")])) == 1


@pytest.mark.parametrize(
    "path", ["x" * 255, "ä" * 127, "a\0b", "a\nb\tc", "\udcff", "http://h/", "file://h/x"]
)
def test_every_name_is_the_name_of_a_file(path: str, tmp_path: Path) -> None:
    (name,) = unique_names([archive(path)]).values()
    (tmp_path / f".{name}.1234567-01234567.tmp").touch()


@pytest.mark.parametrize(
    "fields",
    [["a\tb", "c\nd", "e\rf"], ["%09", "%2509", "%25", "%"], ["%%\t", "100%25\n"], ["", "\udcff", "ü"]],
)
def test_a_row_is_read_back_as_it_was(fields: list[str]) -> None:
    assert parse_row(format_row(fields)) == fields
    assert format_row(fields).count(b"\n") == 1
    assert format_row(fields).count(b"\t") == len(fields) - 1


def names_of(archives: list[Input], ending: str = ".cdx.gz") -> list[str]:
    return list(output_names(archives, ending=ending).values())


def test_an_output_has_the_name_of_its_archive_or_the_path_where_that_is_another_one_s() -> None:
    assert names_of([archive("/x/a.warc.gz")]) == ["x/a.cdx.gz"]
    assert names_of([archive("/x/a.warc.gz")._replace(name="w.warc.gz")]) == ["w.cdx.gz"]
    two = [archive(f"/x/{name}/w.warc.gz")._replace(name="w.warc.gz") for name in "yz"]
    assert names_of(two) == ["y/w.cdx.gz", "z/w.cdx.gz"]
    hidden = [archive(f"/x/{name}")._replace(name=name) for name in ("_a", "b")]
    assert names_of(hidden) == ["_a.cdx.gz", "b.cdx.gz"]
    assert names_of(hidden, TABLE) == ["file_a.cdx.gz", "b.cdx.gz"]
    with pytest.raises(UsageError, match="an archive from a pipe has no name"):
        names_of([archive("-")._replace(name=NO_NAME)])


def test_two_listed_archives_with_one_output_name_are_refused() -> None:
    listed = [Input(Location(f"/{name}/w.warc.gz"), "w", f"list:{name}", "a/w.warc.gz") for name in "12"]
    with pytest.raises(UsageError, match=r"would get the same output name a/w\.warc\.gz\.cdx\.gz; use two"):
        names_of(listed)


def test_one_archive_under_two_names_is_refused() -> None:
    """It would be read twice, and its lines would be in two indexes."""
    twice = [archive("/x/b/a.warc.gz")._replace(name=name) for name in ("a.warc.gz", "b/a.warc.gz")]
    with pytest.raises(UsageError, match=r"would get the same output name"):
        names_of(twice)


def test_an_output_is_one_file_if_it_has_such_a_name_and_is_no_directory(tmp_path: Path) -> None:
    assert is_one_file(str(tmp_path / "a.cdxj.gz"))
    assert not is_one_file(str(tmp_path / "a"))
    (tmp_path / "d.cdxj").mkdir()
    assert not is_one_file(str(tmp_path / "d.cdxj"))
    (tmp_path / "f.cdxj").touch()
    assert is_one_file(str(tmp_path / "f.cdxj"))
    assert is_one_file("s3://b/a.cdx")
    with pytest.raises(UsageError):
        output_file("http://h/a.cdx", replace=True)
    for size in (230, 231):
        (name,) = names_of([archive("/a")._replace(name="x" * (size - 7))])
        assert len(name) == (230 if size == 230 else 174)


def test_indexes_of_a_crawl_are_where_common_crawl_has_them_if_that_is_asked_for() -> None:
    one = Input(Location("s3://b/crawl-data/C/a.warc.gz"), "a", "crawl-data/C/a.warc.gz")
    assert cdx_names([one], True)[one] == "cc-index/cdx/C/a.cdx.gz"
    assert cdx_names([one], False)[one] == "crawl-data/C/a.cdx.gz"


def test_two_archives_with_one_name_in_the_index_are_refused_but_not_one_archive_twice() -> None:
    check_index_names([archive("/x/w.warc.gz"), archive("/x/../x/w.warc.gz")])
    with pytest.raises(UsageError, match=r"both have the file name w\.warc\.gz in the index"):
        check_index_names([archive("/x/w.warc.gz"), archive("/y/w.warc.gz")])
    with pytest.raises(UsageError, match="give archives of different hosts to different runs"):
        cdx_names([archive("/x/w.warc.gz"), archive("/y/w.warc.gz")], True)


def test_a_file_that_exists_is_replaced_only_if_that_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "w.warc.gz"
    path.write_bytes(b"mine")
    with pytest.raises(UsageError, match="is an input"):
        check_archives_stay([Location(str(path))], [archive(str(path))])
    with pytest.raises(UsageError, match="exists"):
        output_file(path, replace=False)
    with pytest.raises(UsageError, match="exists"), writing(Location(str(path)), replace=False):
        pass
    assert path.read_bytes() == b"mine"
    with writing(output_file(path, replace=True), replace=True) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


def test_a_file_that_appears_while_another_is_written_stays(tmp_path: Path) -> None:
    place = output_file(tmp_path / "o", replace=False)
    with pytest.raises(UsageError, match="exists"), writing(place, replace=False) as file:
        file.write(b"new")
        (tmp_path / "o").write_bytes(b"mine")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"o": b"mine"}
    with writing(output_file(tmp_path / "r", replace=True), replace=True) as file:
        file.write(b"new")
        (tmp_path / "r").write_bytes(b"mine")
    assert (tmp_path / "r").read_bytes() == b"new"


def test_an_identity_is_no_spelling() -> None:
    assert identity("./a") == identity("b/../a") == str(Path.cwd() / "a")


@pytest.mark.parametrize("size", [246, 247, 255])
def test_the_outputs_of_an_archive_with_a_long_name_have_shorter_names(
    size: int, pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    long, other = f"{'x' * (size - 8)}.warc.gz", f"{'x' * (size - 9)}y.warc.gz"
    for name in (long, other):
        shutil.copyfile(pywb_warcs / "example.warc.gz", name)
    short = f"{'x' * 150}-*"
    for call, kept in (
        (["index", "-o", "cdx"], f"cdx/{short}.cdx.gz"),
        (["scan", "-o", "found"], f"found/{short}.warc.jsonl.gz"),
        (["recompress", "--index", "--offsets", "-o", "zst"], f"zst/{short}.warc.zst"),
    ):
        for _ in range(2):
            assert main([*call, "-q", long, other]) == 0
            assert len([*tmp_path.glob(kept)]) == 2
    assert len([*tmp_path.glob("zst/x*")]) == 8
    assert main(["reindex", "-q", "-o", "new", "--offsets", "zst", "cdx"]) == 0
    assert len([*tmp_path.glob(f"new/{short}.cdx.gz")]) == 2


NAMES = {
    "long": f"{'x' * 300}.warc.gz",
    "directory": f"{'d' * 300}/a.warc.gz",
    "deep": f"{'d' * 200}/" * 25 + "a.warc.gz",
    "escape": "a\x1b[2Jb\nc\x9b\u202e.warc.gz",
    "usual": "b/a.warc.gz",
}


@pytest.mark.parametrize(
    "command", ["index", "recompress --to gz --index --offsets", "scan --where status=200", "build -s 1"]
)
def test_what_an_archive_chose_gives_safe_names(
    command: str,
    pywb_warcs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Names in a WACZ may be long or have control characters; each archive has an output, and `..` leads nowhere."""
    monkeypatch.chdir(tmp_path)
    data = (pywb_warcs / "iana.warc.gz").read_bytes()
    for key, name in NAMES.items():
        (tmp_path / f"{key}.wacz").write_bytes(make_wacz({f"archive/{name}": data}))
    (tmp_path / "out.wacz").write_bytes(make_wacz({"archive/../../../../a.warc.gz": data}))
    before = set(tmp_path.iterdir())
    words = [*command.split(), "-q", "-o", "o", *(f"{key}.wacz" for key in NAMES)]
    assert main(words) == 0
    assert main([*words, "--replace", "out.wacz"]) == 1
    assert "\x1b" not in capfd.readouterr().err
    assert set(tmp_path.iterdir()) - before == {tmp_path / "o"}
    made = [path.relative_to("o").as_posix() for path in Path("o").rglob("*.gz")]
    assert len([name for name in made if re.search(r"(cdx|jsonl)\.gz$", name)]) == len(NAMES)
    assert all(name.isprintable() and len(name) < 1000 for name in made)
    assert "build" in command or any(name.startswith("usual.wacz/archive/b/a.") for name in made)


def test_an_input_at_a_url_is_known_by_another_scheme(tmp_path: Path) -> None:
    """No file of this machine is asked for it."""
    given = [Location("s3://bucket/a.warc.gz"), Location(str(tmp_path / "b"))]
    check_inputs_stay([Location("s3://bucket/b.warc.gz"), Location(str(tmp_path / "a"))], given)
    for name in ("s3://bucket/a.warc.gz", "s3a://bucket/a.warc.gz"):
        with pytest.raises(UsageError, match="is an input"):
            check_inputs_stay([Location(name)], given)


def test_a_pipe_among_other_archives_has_no_name_either() -> None:
    with pytest.raises(UsageError, match="an archive from a pipe has no name"):
        names_of([archive("/x/a.warc.gz"), archive("-")._replace(name=NO_NAME)])


@pytest.mark.parametrize(
    ("name_of", "advice"),
    [
        (output_name, r", or one output file \(-o NAME\.cdxj\.gz\)"),
        (partial(recompressed_name, to="zst"), ""),
    ],
)
def test_one_output_file_is_advised_only_where_there_can_be_one(
    name_of: Callable[[str], str], advice: str
) -> None:
    listed = [Input(Location(f"/{name}/w.warc.gz"), "w", f"list:{name}", "a/w.warc.gz") for name in "12"]
    with pytest.raises(UsageError, match=rf"; use two output directories{advice}$"):
        output_names(listed, name_of)


HASH = "-[0-9a-f]{16}"


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        (f"{'x' * 221}.a", r"x{221}\.a\.cdx\.gz"),
        (f"{'ä' * 110}.a", r"ä{110}\.a\.cdx\.gz"),
        (f"{'ä' * 111}.a", rf"ä{{75}}{HASH}\.a\.cdx\.gz"),
        (f"x{'ä' * 111}.a", rf"xä{{74}}{HASH}\.a\.cdx\.gz"),
        ("a\x1bb.x", rf"a_b{HASH}\.x\.cdx\.gz"),
        ("d\x7f/b", rf"d_{HASH}/b\.cdx\.gz"),
        ("/".join(["d" * 99] * 9 + ["x" * 93]), r"(d{99}/){9}x{93}\.cdx\.gz"),
        ("/".join(["d" * 99] * 9 + ["x" * 94]), rf"x{{94}}{HASH}\.cdx\.gz"),
        ("/".join(["ä" * 50] * 9 + ["x" * 85]), rf"x{{85}}{HASH}\.cdx\.gz"),
    ],
    ids=map(str, range(9)),
)
def test_a_name_is_as_short_as_disks_need_it(name: str, pattern: str) -> None:
    (found,) = names_of([archive("/a")._replace(name=name)])
    assert re.fullmatch(pattern, found), found
    other = names_of([archive("/a")._replace(name=f"{name}z")])
    assert other != [found]


def test_only_archives_of_a_crawl_have_a_place_for_their_index() -> None:
    one = Input(Location("s3://b/x/crawl-data/a.warc.gz"), "a", "list:1: x")
    assert cdx_names([one], True)[one] == "x/crawl-data/a.cdx.gz"


def test_each_file_that_is_read_stays_whatever_its_names_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "list"):
        Path(name).touch()
    Path("hard").hardlink_to("a")
    Path("soft").symlink_to("a")
    listed = Input(Location("s3://b/x"), "x", "list:1: s3://b/x")
    assert listed.manifest == "list"
    for output in ("list", "./list", "s3://b/x"):
        with pytest.raises(UsageError, match="is an input"):
            check_archives_stay([Location(output)], [listed])
    check_archives_stay([Location("hard"), Location("new"), Location("a\0b")], [listed])
    check_inputs_stay([Location("a")], [Location("hard")])  # the other name of the file stays as it is
    inputs = [Location("hard"), Location("soft"), Location("a")]
    for number in range(3):
        with pytest.raises(UsageError, match=r"^a: is an input"):
            check_inputs_stay([Location("new"), Location("a")], inputs[number:])
    with pytest.raises(UsageError, match="is an input"):
        check_inputs_stay([Location("new")], [Location("new")])
