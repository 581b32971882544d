"""`cdxmill reindex`: lines get the places of their records in the new archives, and nothing else of them changes."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdxmill.cli.main import main
from cdxmill.formats.lines.capture_fields import RecordPlace
from cdxmill.formats.offset_table import HEADER
from cdxmill.stages.lines.move_lines import move_line

NAMES = ("example-url-agnostic-revisit.warc.gz", "iana.warc.gz", "example.arc.gz", "example-extra.warc")


@pytest.fixture
def directory(pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`warcs` and `zst`, which has them again, with their tables."""
    monkeypatch.chdir(tmp_path)
    Path("warcs/below").mkdir(parents=True)
    for number, name in enumerate(NAMES):
        shutil.copyfile(pywb_warcs / name, Path("warcs", "below" if number else "", name))
    assert run("recompress", "--offsets", "-o", "zst", "warcs") in (0, 1)
    return tmp_path


def run(*args: str) -> int:
    return main([args[0], *(() if args[0] == "lookup" else ("-q",)), *args[1:]])


def lines(path: str) -> list[bytes]:
    data = Path(path).read_bytes()
    return (gzip.decompress(data) if path.endswith(".gz") else data).splitlines()


@pytest.mark.parametrize("name", ["a.cdxj", "a.cdxj.gz", "a.cdx"])
def test_one_index_of_all_archives_is_that_of_the_new_ones(name: str, directory: Path) -> None:
    options = ["--cdx11"] if name.endswith("cdx") else []
    assert run("index", *options, "-o", name, "warcs") in (0, 1)
    assert run("index", *options, "-o", f"new-{name}", "zst") == 0
    assert run("reindex", "-o", "out", "--offsets", "zst", name) == 0
    assert lines(f"out/{name}") == lines(f"new-{name}")
    assert any(b"revisit" in line for line in lines(f"out/{name}"))
    assert any(line.startswith(b" CDX") for line in lines(f"out/{name}")) == bool(options)


def test_the_shards_of_a_cluster_are_moved_and_become_a_cluster_again(directory: Path) -> None:
    for place in ("warcs", "zst"):
        assert run("build", "-o", f"cluster-{place}", "--shards", "2", place) in (0, 1)
    shards = sorted(map(str, Path("cluster-warcs").glob("cdx-*.gz")))
    assert run("reindex", "-o", "out", "--offsets", "zst", *shards) == 0
    assert run("zipnum", "-o", "again", "--shards", "2", "out/cdx-00000.gz", "out/cdx-00001.gz") == 0
    for shard in shards:
        name = Path(shard).name
        assert lines(f"again/{name}") == lines(f"cluster-zst/{name}")


def test_lines_of_other_archives_stay_as_they_are(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("index", "-o", "a.cdxj", "warcs") in (0, 1)
    Path("zst/below/iana.warc.zst.offsets.gz").unlink()
    assert main(["reindex", "-o", "out", "--offsets", "zst", "a.cdxj"]) == 0
    others = {line for line in lines("a.cdxj") if b"iana.warc.gz" in line}
    assert len(others) == 171
    assert others == {line for line in lines("out/a.cdxj") if b".gz" in line}
    assert "171 of other archives" in capfd.readouterr().err


def test_names_relative_to_another_directory_keep_it(directory: Path) -> None:
    """`index --dir-root` and Common Crawl write more of the path than `recompress` knows."""
    assert run("index", "-d", str(directory.parent), "-o", "a.cdxj", "warcs") in (0, 1)
    assert run("reindex", "-o", "out", "--offsets", "zst", "a.cdxj") == 0
    found = {json.loads(line.split(b" ", 2)[2])["filename"] for line in lines("out/a.cdxj")}
    assert f"{directory.name}/warcs/below/iana.warc.zst" in found
    assert not any(name.endswith(".gz") for name in found)


def test_an_index_of_another_state_of_the_archive_is_reported(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("index", "-o", "a.cdxj", "warcs") in (0, 1)
    text = Path("a.cdxj").read_bytes()
    old = next(line for line in text.splitlines(keepends=True) if b"iana.warc.gz" in line)
    length = json.loads(old.split(b" ", 2)[2])["length"].encode()
    Path("a.cdxj").write_bytes(
        text.replace(old, old.replace(b'"length": "%b' % length, b'"length": "1%b' % length))
    )
    assert run("reindex", "-o", "out", "--offsets", "zst", "a.cdxj") == 1
    (message,) = capfd.readouterr().err.splitlines()
    assert message.startswith(
        "a.cdxj: 1 line skipped, no record of below/iana.warc.gz has this offset and length in zst"
    )
    assert len(lines("out/a.cdxj")) == len(text.splitlines()) - 1
    assert Path("out/failures.tsv").read_text().startswith(str(directory / "a.cdxj"))


def test_what_is_written_is_kept_and_not_overwritten(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("index", "-o", "cdx", "warcs") in (0, 1)
    call = ["reindex", "-o", "out", "--offsets", "zst", "cdx"]
    assert main(call) == 0
    before = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")}
    capfd.readouterr()
    assert main(call) == 0
    assert "4 up to date" in capfd.readouterr().err
    assert before == {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")}
    assert run("recompress", "--level", "1", "--replace", "-o", "zst", "warcs") in (0, 1)
    assert main(call) == 2, "the archives were written again, and their tables with them"
    assert "was made with other options" in capfd.readouterr().err
    assert main([*call, "--replace"]) == 0
    assert run("index", "-o", "new", "zst/below") == 0
    assert lines("out/below/iana.cdx.gz") == [
        line.replace(b'"iana', b'"below/iana') for line in lines("new/iana.warc.zst.cdx.gz")
    ]
    assert main([*call[:2], "cdx", *call[3:]]) == 2
    assert "is an input" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data[:-20], "truncated"),
        (lambda data: gzip.compress(b"a\tb\n"), "is not a table of offsets"),
        (lambda data: gzip.compress(gzip.decompress(data)[:-30]), "too few or too many fields"),
        (lambda data: gzip.compress(gzip.decompress(data) * 2), "of several archives"),
        (lambda data: gzip.compress(gzip.decompress(data).replace(b"\t334\t", b"\tx\t")), "not a number"),
        (
            lambda data: gzip.compress(gzip.decompress(data).replace(b"\t2592\t", b"\t3\t", 1)),
            "do not ascend",
        ),
    ],
    ids=["truncated", "other file", "half a row", "twice", "no number", "no order"],
)
def test_a_corrupt_table_gives_no_index(
    change: object, reason: str, directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert callable(change)
    assert run("index", "-o", "cdx", "warcs") in (0, 1)
    table = Path("zst/below/iana.warc.zst.offsets.gz")
    table.write_bytes(change(table.read_bytes()))
    assert run("reindex", "-o", "out", "--offsets", "zst", "cdx") == 1
    assert reason in capfd.readouterr().err
    assert not Path("out/below/iana.cdx.gz").exists()
    if Path("out").exists():  # else it is refused before the first index
        assert reason in Path("out/failures.tsv").read_text()
        assert list(Path("out").rglob(".scratch*")) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Missing option '--offsets'"),
        (["--offsets", "warcs"], "no tables of offsets (*.offsets.gz) found in warcs"),
        (["--offsets", "zst", "--offsets", "copy"], "are tables of the same archive"),
    ],
)
def test_wrong_tables_are_refused(
    options: list[str], message: str, directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree("zst", "copy")
    assert run("index", "-o", "a.cdxj", "warcs") in (0, 1)
    assert run("reindex", "-o", "out", *options, "a.cdxj") == 2
    assert message in capfd.readouterr().err
    assert not Path("out").exists()


def test_tables_without_a_row_move_nothing(directory: Path) -> None:
    """They are those of archives without records; two of them are no tables of one archive."""
    assert run("index", "-o", "a.cdxj", "warcs") in (0, 1)
    assert run("reindex", "-o", "wanted", "--offsets", "zst", "a.cdxj") == 0
    for name in ("1", "2"):
        Path(f"zst/{name}.warc.zst.offsets.gz").write_bytes(gzip.compress(HEADER))
    assert run("reindex", "-o", "out", "--offsets", "zst", "a.cdxj") == 0
    assert lines("out/a.cdxj") == lines("wanted/a.cdxj")


def test_a_base_name_that_two_tables_have_is_no_reason_to_copy_the_old_place(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The index has the base name: lines of it are skipped, and the reason is reported."""
    for name in ("a", "b"):
        Path("two", name).mkdir(parents=True)
        shutil.copyfile("warcs/below/iana.warc.gz", f"two/{name}/iana.warc.gz")
    assert run("index", "-o", "iana.cdxj", "warcs/below/iana.warc.gz") == 0
    assert run("recompress", "--offsets", "-o", "new", "two") == 0
    capfd.readouterr()
    assert run("reindex", "-o", "out", "--offsets", "new", "iana.cdxj") == 1
    tables = "new/a/iana.warc.zst.offsets.gz and new/b/iana.warc.zst.offsets.gz"
    reason = f"171 lines skipped, iana.warc.gz is the base name of several archives, those of {tables}"
    assert reason in capfd.readouterr().err
    assert lines("out/iana.cdxj") == []
    assert run("reindex", "-o", "one", "--offsets", "new/a", "iana.cdxj") == 0
    assert len(lines("one/iana.cdxj")) == 171


def test_files_of_others_beside_a_new_archive_are_not_overwritten(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("mine").mkdir()
    Path("mine/iana.warc.zst.offsets.gz").write_bytes(b"mine")
    Path("mine/iana.warc.zst.cdx.gz").write_bytes(gzip.compress(b"com,a)/ 2020 {}\n"))
    call = ["recompress", "-o", "mine", "warcs/below/iana.warc.gz"]
    assert run(*call) == 2
    assert "is not a table of offsets of iana.warc.zst that recompress writes" in capfd.readouterr().err
    Path("mine/iana.warc.zst.offsets.gz").unlink()
    assert run(*call, "--index") == 2
    assert "is not an index of iana.warc.zst that recompress writes" in capfd.readouterr().err
    assert run(*call, "--index", "--replace") == 0


NEW = RecordPlace(b"b/n\xc3\xa4w.zst", 1 << 40, 5)
PLAIN = st.text(st.characters(codec="utf-8"))
SIMPLE = PLAIN | st.integers() | st.none() | st.booleans()
VALUES = SIMPLE | st.lists(SIMPLE, max_size=3) | st.dictionaries(PLAIN, SIMPLE, max_size=3)
KEYS = PLAIN.filter(
    lambda name: (
        name
        not in {
            "filename",
            "offset",
            "length",
            "f",
            "o",
            "l",
            "s",
            *map("orig.".__add__, ("filename", "offset", "length")),
        }
    )
)


@settings(max_examples=60)
@given(
    st.dictionaries(KEYS, VALUES, max_size=4),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_only_the_place_of_a_json_line_changes(
    fields: dict[str, object], is_text: bool, is_ascii: bool, is_compact: bool, random: object
) -> None:
    def place(filename: str, offset: int, length: int) -> dict[str, object]:
        return {
            "filename": filename,
            "offset": str(offset) if is_text else offset,
            "length": str(length) if is_text else length,
        }

    items = [*{**fields, **place("ä.gz", 7, 12)}.items()]
    random.shuffle(items)  # type: ignore[attr-defined]
    separators = (",", ":") if is_compact else (", ", ": ")
    line = b"com,a)/{ 2020 " + json.dumps(dict(items), ensure_ascii=is_ascii, separators=separators).encode()
    assert move_line(line, lambda old: old) is line
    moved = move_line(line, lambda old: NEW if old == RecordPlace("ä.gz".encode(), 7, 12) else old)
    assert moved.startswith(b"com,a)/{ 2020 ")
    assert json.loads(moved[14:]) == {**fields, **place("b/näw.zst", 1 << 40, 5)}
    assert [*json.loads(moved[14:])] == [name for name, _ in items]


@pytest.mark.parametrize(
    ("line", "moved"),
    [
        (b"k 2020 u m 200 d - - 12 7 a.gz", b"k 2020 u m 200 d - - 5 9 a%20b"),
        (b"k 2020 u m 200 d - 7 a.gz\r", b"k 2020 u m 200 d - 9 a%20b\r"),
        (b"k 2020 u 12 7 a.gz", b"k 2020 u 5 9 a%20b"),
        (b"k 2020 u m 200 d - - 3 4 b.gz 12 7 a.gz", b"k 2020 u m 200 d - - 3 4 b.gz 5 9 a%20b"),
        (b"k 2020 u m 200 d - - - 7 a.gz - - -", b"k 2020 u m 200 d - - - 9 a%20b - - -"),
        (
            b'k 2020 {"offset": 7, "f": "a.gz", "orig.filename": "a.gz", "orig.offset": "7"}',
            b'k 2020 {"offset": 9, "f": "a b", "orig.filename": "a b", "orig.offset": "9"}',
        ),
    ],
)
def test_lines_of_all_formats_are_moved(line: bytes, moved: bytes) -> None:
    def find(place: RecordPlace) -> RecordPlace:
        return RecordPlace(b"a b", 9, 5) if place.filename == b"a.gz" and place.offset == 7 else place

    assert move_line(line, find) == moved


@pytest.mark.parametrize(
    "line",
    [
        b"k 2020 u m 200 d 12",
        b'k 2020 {"filename": "a.gz"}',
        b'k 2020 {"filename": "a.gz", "offset": "-1"}',
        b'k 2020 {"filename": "a.gz", "offset": "1", "offset": "2"}',
        b'k 2020 {"filename": "a.gz", "offset": "1", "x": {}',
    ],
)
def test_a_line_without_a_place_is_an_error(line: bytes) -> None:
    with pytest.raises(ValueError, match="the line has"):
        move_line(line, lambda place: place)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("out/a.cdxj", "was changed, or cdxmill has no record of it"),
        ("a.cdxj", "was changed, or cdxmill has no record of it"),
        ("b.cdxj", "was changed, or was not made from a.cdxj"),
        ("notes.txt", "was changed, or was not made from a.cdxj"),
    ],
)
def test_an_output_without_a_record_is_not_overwritten(
    source: str, reason: str, directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("notes.txt").write_text("mine\n")
    assert run("index", "-o", "a.cdxj", "warcs/below") in (0, 1)
    assert run("index", "-o", "b.cdxj", f"warcs/{NAMES[0]}") in (0, 1)
    assert run("reindex", "-o", "out", "--offsets", "zst", "a.cdxj") == 0
    wanted = Path("out/a.cdxj").read_bytes()
    left = Path(source).read_bytes()
    Path("out/.outputs.tsv").unlink()
    Path("out/a.cdxj").write_bytes(left)
    capfd.readouterr()
    status = run("reindex", "-o", "out", "--offsets", "zst", "a.cdxj")
    (line,) = capfd.readouterr().err.splitlines()
    assert (status, line.partition(";")[0]) == (2, f"cdxmill: out/a.cdxj: {reason}")
    assert Path("out/a.cdxj").read_bytes() == left
    assert run("reindex", "--replace", "-o", "out", "--offsets", "zst", "a.cdxj") == 0
    assert Path("out/a.cdxj").read_bytes() == wanted
