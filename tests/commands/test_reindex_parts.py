"""What `reindex` writes, counts and says of one index file of a few lines."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cdxmill.commands.per_archive import reindex as reindexing
from cdxmill.commands.per_archive.reindex import ReindexSummary, reindex
from cdxmill.commands.per_archive.task import ArchiveTask, OneOutput, OutputOptions
from cdxmill.errors import OutageError, UsageError
from cdxmill.formats.offset_table import HEADER, row_format
from cdxmill.inputs.named import named_input
from cdxmill.outputs.existing import Rule
from cdxmill.outputs.offset_tables import find_tables
from cdxmill.running.failures import Failure, Failures
from cdxmill.stages.lines import line_lists
from cdxmill.storage.location import Location

ROW, OTHER_ROW = row_format("a.warc.gz", "a.warc.zst"), row_format("b.warc.gz", "b.warc.zst")
TABLE = HEADER + b"".join(ROW % (100 * number, 100, 70 * number, 70) for number in range(4))
HEAD = b" CDX N b a m s k r M S V g"


def line(key: str, number: int, name: str = "a.warc", is_new: bool = False, length: int = 100) -> bytes:
    """A line of a record of the archive, or of the new one."""
    ending, size = (".zst", 70) if is_new else (".gz", 100)
    length = 70 if is_new else length
    return f"com,{key})/ 2020 http://{key}.com/ - 200 X - - {length} {size * number} {name}{ending}".encode()


def new(key: str, number: int) -> bytes:
    return line(key, number, is_new=True)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with the table of a.warc.gz."""
    monkeypatch.chdir(tmp_path)
    Path("t.offsets.gz").write_bytes(gzip.compress(TABLE, mtime=0))
    return tmp_path


def written(*names: str, rule: Rule = Rule.STAY, failures: Failures | None = None) -> ReindexSummary:
    """Write index files again, below `out`."""
    tables = find_tables(["t.offsets.gz"], Failures())
    inputs = {named_input(name, name): name for name in names}
    options = OutputOptions(existing=rule, quiet=True)
    return reindex(inputs, tables, "out", options, failures or Failures(printed=False))


OTHER = line("o", 3, "other.warc")


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ([line("b", 1), line("a", 2)], [new("a", 2), new("b", 1)], (2, 0, 0, 0)),
        ([HEAD, line("b", 1), line("a", 2)], [HEAD, new("a", 2), new("b", 1)], (2, 0, 0, 0)),
        ([b"", line("a", 1), b""], [new("a", 1)], (1, 0, 0, 0)),
        ([HEAD, line("a", 1), HEAD, line("b", 2)], [HEAD, new("a", 1), new("b", 2)], (2, 0, 0, 0)),
        ([OTHER, line("a", 1)], [new("a", 1), OTHER], (1, 1, 0, 0)),
        ([line("a", 1), line("a", 1), OTHER, OTHER], [new("a", 1), OTHER], (2, 2, 0, 2)),
        ([HEAD, line("a", 1), line("a", 1)], [HEAD, new("a", 1)], (2, 0, 0, 1)),
        ([line("a", 9), line("b", 1)], [new("b", 1)], (1, 0, 1, 0)),
        ([line("a", 1, length=99), line("b", 1)], [new("b", 1)], (1, 0, 1, 0)),
        ([HEAD], [HEAD], (0, 0, 0, 0)),
    ],
)  # fmt: skip
def test_lines_are_moved_sorted_and_counted(
    before: list[bytes], after: list[bytes], counts: tuple[int, int, int, int]
) -> None:
    Path("a.cdx").write_bytes(b"\n".join(before) + b"\n")
    found = written("a.cdx")
    assert Path("out/a.cdx").read_bytes() == b"".join(one + b"\n" for one in after)
    moved, copied, skipped, duplicates = counts
    assert found == ReindexSummary(1, 0, moved, copied, skipped, duplicates)


def test_the_header_of_a_long_file_is_that_of_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_lists, "BATCH", 1)
    monkeypatch.setattr(
        reindexing, "read_pieces", lambda path: iter(Path(path).read_bytes().splitlines(True))
    )
    before = [HEAD, *(line("a", number % 4) for number in range(9)), b"", HEAD + b" x", line("b", 1), b""]
    Path("a.cdx").write_bytes(b"\n".join(before))
    written("a.cdx")
    wanted = [HEAD, *sorted({new("a", number) for number in range(4)}), new("b", 1)]
    assert Path("out/a.cdx").read_bytes() == b"".join(one + b"\n" for one in wanted)


def test_failures_of_an_earlier_run_are_forgotten() -> None:
    Path("a.cdx").write_bytes(line("a", 1) + b"\n")
    Path("out").mkdir()
    Path("out/_a.cdx.failures").write_text("a.cdx\t\twas absent\t\n")
    assert written("a.cdx").moved == 1
    assert not Path("out/_a.cdx.failures").exists()
    assert written("a.cdx").kept == 1


def test_lines_that_are_skipped_are_a_failure_of_each_kind() -> None:
    Path("a.cdx").write_bytes(b"".join(line(key, 9) + b"\n" for key in "ab") + line("c", 1) + b"\n")
    failures = Failures(printed=False)
    assert written("a.cdx", failures=failures).skipped == 2
    (found,) = failures.items
    assert (found.path, found.offset, found.hint) == ("a.cdx", None, "index the new archive")
    assert found.reason.startswith("2 lines skipped, no record of a.warc.gz has this offset and length in ")
    assert found.reason.endswith(f"t.offsets.gz; the first is {line('a', 9)[:80]!r}")
    assert Path("out/failures.tsv").read_text().count("\n") == 1


@pytest.mark.parametrize("is_table", [True, False])
def test_nothing_is_written_if_the_index_or_a_table_is_corrupt(is_table: bool) -> None:
    Path("a.cdx").write_bytes(line("a", 1) + b"\n" if is_table else b"no line of an index\n")
    Path("b.cdx").write_bytes(OTHER + b"\n")
    if is_table:
        Path("t.offsets.gz").write_bytes(gzip.compress(TABLE[:-3], mtime=0))
    Path("out").mkdir()
    failures = Failures(printed=False)
    found = written("a.cdx", "b.cdx", failures=failures)
    assert found == ReindexSummary(2, 0, 0, 1, 0, 0)
    (failure,) = failures.items
    assert failure.path == "a.cdx"
    assert failure.reason.startswith("needs t.offsets.gz: ") == is_table
    assert {path.name for path in Path("out").glob("*.cdx")} == {"b.cdx"}
    assert written("a.cdx", "b.cdx").kept == 1, "the other one is tried again"


def test_what_was_written_is_kept_until_it_or_a_table_changes() -> None:
    Path("a.cdx").write_bytes(line("a", 1) + b"\n")
    assert written("a.cdx") == ReindexSummary(1, 0, 1, 0, 0, 0)
    assert written("a.cdx") == ReindexSummary(0, 1, 0, 0, 0, 0)
    Path("t.offsets.gz").write_bytes(gzip.compress(TABLE + ROW % (400, 100, 280, 70), mtime=0))
    with pytest.raises(UsageError, match="was made with other options"):
        written("a.cdx")
    assert written("a.cdx", rule=Rule.REPLACE) == ReindexSummary(1, 0, 1, 0, 0, 0)
    Path("a.cdx").write_bytes(line("a", 2) + b"\n")
    with pytest.raises(UsageError, match="was made from an earlier state"):
        written("a.cdx")
    assert Path("out/a.cdx").read_bytes() == new("a", 1) + b"\n"


def test_the_order_and_the_spelling_of_tables_do_not_matter(here: Path) -> None:
    """So the same command from another directory keeps what is there."""
    other = gzip.compress(HEADER + OTHER_ROW % (0, 1, 0, 1), mtime=0)
    (here / "u.offsets.gz").write_bytes(other)
    Path("a.cdx").write_bytes(line("a", 1) + b"\n")
    options = OutputOptions(existing=Rule.STAY, quiet=True)
    kept = []
    for named in (
        ["t.offsets.gz", "u.offsets.gz"],
        [f"{here}/u.offsets.gz", "../" + here.name + "/t.offsets.gz"],
    ):
        tables = find_tables(named, Failures())
        found = reindex({named_input("a.cdx", "a.cdx"): "a.cdx"}, tables, "out", options, Failures())
        kept.append(found.kept)
    assert kept == [0, 1]


def test_an_index_whose_storage_did_not_answer_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be written of it could not be recorded."""
    Path("a.cdx").write_bytes(line("a", 1) + b"\n")
    answers, init = [OutageError("a.cdx", "does not answer", "try again")], OneOutput.__init__
    status = Location.status

    def fail_once(place: Location) -> object:
        if answers:
            raise answers.pop()
        return status(place)

    def failing(output: OneOutput, task: ArchiveTask) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Location, "status", fail_once)
            init(output, task)

    monkeypatch.setattr(OneOutput, "__init__", failing)
    failures = Failures(printed=False)
    assert written("a.cdx", failures=failures) == ReindexSummary(1, 0, 0, 0, 0, 0)
    assert failures.items == [Failure("a.cdx", None, "does not answer", "try again", is_outage=True)]
    assert not Path("out/a.cdx").exists()
    assert Path("out/failures.tsv").read_text().count("\n") == 1
