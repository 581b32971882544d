"""Inputs and options of which `prefix-index build` makes no index, each told in a line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import cdxmill
from cdxmill.cli.main import main
from cdxmill.commands import prefix_index
from cdxmill.commands.prefix_index import _is_cluster, build_tree
from cdxmill.errors import InputError, RefusedError, UsageError
from cdxmill.options.trees import TreeBuilding
from cdxmill.running.failures import Failures
from cdxmill.storage.location import Location

from ..storage.range_server import serving

LINE = (
    'com,a)/ 20200101000000 {"url": "http://a.com/", "offset": "0", "length": "5", "filename": "a.warc.gz"}\n'
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file a.cdxj, others beside it, and a cluster of no line: exclude.txt has all of it."""
    directory = tmp_path_factory.mktemp("made")
    (directory / "a.cdxj").write_text(LINE)
    (directory / "blank.cdxj").write_text("\n")
    (directory / "p.tsv").write_text("com,a)/\t1 2 3\n")
    (directory / "cut.cdxj").write_text('com,a)/ 2020 {"url": "http://a.com/"}\n')
    (directory / "none").mkdir()
    (directory / "none/exclude.txt").write_text("a.com/*\n")
    output, lines = str(directory / "none"), str(directory / "a.cdxj")
    assert main(["zipnum", "-q", "-p", "1", "-s", "1", "-o", output, lines]) == 0
    return directory


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with copies of these."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        (
            ["--block-size", "10", "a.cdxj"],
            2,
            "--block-size: invalid block size 10: expected 36 to 16777216 bytes",
        ),
        (["-", "-"], 2, "-: was given twice, but it can be read only once"),
        (["none"], 1, "none: has no lines for the index; check the inputs"),
        (["blank.cdxj"], 1, "blank.cdxj: has no lines for the index; check the inputs"),
        (["none", "blank.cdxj"], 1, "none: has no lines for the index; check the inputs"),
        (["none", "none/cluster.idx"], 1, "2 inputs: has no lines for the index; check the inputs"),
        (["a.cdxj", "p.tsv"], 2, "some inputs are CDX lines, others keys and pointers: build one index of each"),
        (["none", "p.tsv"], 2, "some inputs are CDX lines, others keys and pointers: build one index of each"),
        (["--layout", "classic", "a.cdxj"], 2, "--layout: CDX lines have captures; other layouts need lines of keys and pointers"),
        (["--layout", "capture", "p.tsv"], 1, "p.tsv: expected key, file name, offset, length, timestamp and status, with tabs between them"),
        (["cut.cdxj"], 1, "cut.cdxj: "),
        (["absent"], 1, "absent: cannot be read"),
    ],
)  # fmt: skip
def test_what_gives_no_index_is_told(
    words: list[str], status: int, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["prefix-index", "build", "-q", "-o", "x.tree", *words]) == status
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"cdxmill: {reason}")
    assert not Path("x.tree").exists()


def test_nothing_at_all_is_no_input() -> None:
    with pytest.raises(UsageError, match="no input"):
        cdxmill.build_prefix_index([], output="x.tree")


@pytest.mark.usefixtures("here")
def test_a_url_that_may_not_be_looked_below_is_a_file(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A bucket that may not be listed refuses a cluster.idx that is not there, and gives the file itself."""

    def refused(place: Location) -> bool:
        raise RefusedError(place.text, "HTTP 403")

    monkeypatch.setattr(Location, "exists", refused)
    with serving() as server:
        server.add("/lines", LINE.encode())
        assert main(["prefix-index", "build", "-q", "--replace", "-o", "x.tree", f"{server.url}/lines"]) == 0
    monkeypatch.undo()
    capfd.readouterr()
    assert main(["lookup", str(here / "x.tree"), "a.com", "--count"]) == 0
    assert capfd.readouterr().out == "1\n"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("output", ["a.cdxj", "built/cluster.idx", "built/cdx-00000.gz", "built/part-00000"])
def test_an_index_is_never_written_over_what_it_is_made_of(
    output: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["zipnum", "-q", "-p", "1", "-s", "1", "-o", "built", "a.cdxj"]) == 0
    before = Path(output).read_bytes()
    capfd.readouterr()
    for replace in ([], ["--replace"]):
        assert main(["prefix-index", "build", "-q", *replace, "-o", output, "a.cdxj", "built"]) == 2
        assert Path(output).read_bytes() == before
    assert f"cdxmill: {output}: is an input; choose another output\n" in capfd.readouterr().err


@pytest.mark.usefixtures("here")
def test_an_index_is_not_written_to_a_pipe() -> None:
    with pytest.raises(UsageError) as raised:
        cdxmill.build_prefix_index("a.cdxj", output="-")
    assert str(raised.value) == "-o needs a file: the start of a prefix B-tree is written last"


@pytest.mark.usefixtures("here")
def test_a_file_without_lines_adds_nothing_to_others(capfd: pytest.CaptureFixture[str]) -> None:
    for number, inputs in enumerate(
        (["a.cdxj"], ["blank.cdxj", "a.cdxj"], ["none", "a.cdxj"], ["a.cdxj", "a.cdxj"])
    ):
        assert cdxmill.build_prefix_index(inputs, output=f"{number}.tree").items == 1
    one = Path("0.tree").read_bytes()
    assert [Path(f"{number}.tree").read_bytes() == one for number in range(4)] == [True] * 4


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "is_cluster"),
    [
        ("none", True),
        ("none/cluster.idx", True),
        ("a.cdxj", False),
        ("absent.cdxj.gz", False),
        ("absent", False),
        ("lines", False),
        ("below", False),
    ],
)
def test_a_cluster_is_told_from_files(name: str, is_cluster: bool) -> None:
    Path("below").mkdir()
    for copy in ("below/a.cdxj", "lines"):
        Path(copy).write_text(LINE)
    assert _is_cluster(name) is is_cluster


@pytest.mark.parametrize("name", ["http://host/a.cdxj", "http://host/a.CDX.gz", "x/a.tsv", "a.txt.gz"])
def test_what_has_the_name_of_a_file_is_not_looked_below(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server would be asked for one file after the other."""
    monkeypatch.setattr(prefix_index, "find_index", lambda place: pytest.fail(f"{place} is looked at"))
    assert not _is_cluster(name)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("number", "block_size", "blocks", "index_blocks", "reads"), [(1, 65536, 1, 1, 2), (900, 200, 225, 24, 4)]
)
def test_a_summary_has_the_blocks_from_the_root_to_an_item(
    number: int, block_size: int, blocks: int, index_blocks: int, reads: int
) -> None:
    lines = [LINE.replace("com,a)/ ", f"com,a)/{page:05} ") for page in range(number)]
    Path("many.cdxj").write_text("".join(lines))
    asked = TreeBuilding("many.cdxj", output="x.tree", block_size=block_size)
    found = build_tree(asked, Failures(printed=False))
    assert found == (number, 1, blocks, index_blocks, reads, Path("x.tree").stat().st_size)


@pytest.mark.parametrize("is_remote", [True, False])
def test_a_place_that_cannot_be_looked_at_is_a_file_only_if_it_is_remote(
    is_remote: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(place: Location) -> None:
        raise InputError(place.text, "cannot be read")

    monkeypatch.setattr(prefix_index, "find_index", fail)
    if is_remote:
        assert not _is_cluster("http://host/lines")
        return
    with pytest.raises(InputError, match="lines: cannot be read"):
        _is_cluster("lines")


@pytest.mark.usefixtures("here")
def test_pointers_of_several_files_are_merged() -> None:
    Path("q.tsv").write_text("com,a)/\t1 2 2\ncom,b)/\t1 2 3\n")
    Path("all.tsv").write_text("com,a)/\t1 2 2\ncom,a)/\t1 2 3\ncom,b)/\t1 2 3\n")
    layout = "a:u8,b:u8,c:u16"
    several = cdxmill.build_prefix_index(["p.tsv", "q.tsv"], output="x.tree", layout=layout)
    single = cdxmill.build_prefix_index("all.tsv", output="y.tree", layout=layout)
    assert (several.items, single.items) == (3, 3)
    assert Path("x.tree").read_bytes() == Path("y.tree").read_bytes()
