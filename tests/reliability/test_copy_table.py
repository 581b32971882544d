"""Every row about `copy` of docs/reliability.md, tested with the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from cdxmill.cli.main import main
from cdxmill.storage import patience

from ..storage.fault_server import failing
from .cases_copy import BAD, CASES, URLS
from .table import Row, read_table

ROWS = {
    slug: row
    for slug, row in read_table(Path(__file__).resolve().parents[2] / "docs/reliability.md").items()
    if slug.startswith("copy-")
}
COPIED = {"all": URLS, "all others": [*URLS[:BAD], *URLS[BAD + 1 :]], "all before": URLS[:-1], "none": []}


def test_every_row_has_a_case_and_every_case_has_a_row() -> None:
    assert sorted(ROWS) == sorted(CASES)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row_is_what_happens(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(patience, "LONGEST_WAIT", 0.01)
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
    case, out = CASES[row.slug], tmp_path / "out"
    (tmp_path / "a.warc.gz").write_bytes(case.indexed)
    assert main(["index", "-q", "-o", str(tmp_path / "a.cdxj"), str(tmp_path / "a.warc.gz")]) == 0
    with failing() as server:
        server.files["/a.warc.gz"] = case.indexed if case.served is None else case.served
        server.plan(case.fault, 1, once=case.is_once)
        call = ["copy", "-q", "-p", "1", "-o", str(out), "--archives", server.url, str(tmp_path / "a.cdxj")]
        capfd.readouterr()
        with case.around(out):
            status = main(call)
        said = capfd.readouterr().err.splitlines()
        is_listed = status == 1 or (status == 3 and case.fault)
        missing = len(URLS) - len(COPIED[row.lines]) if is_listed else len(row.messages)
        assert len(said) == missing, said
        for line in said:  # one per missing record
            assert row.messages[0].fullmatch(line), f"{line!r} is not {row.messages[0].pattern!r}"
        assert (status, copied(out)) == (row.status, COPIED[row.lines])
        server.files["/a.warc.gz"] = case.indexed
        server.plan("", 0, once=True)
        again = main(call)
    is_wrong_for_good = row.slug == "copy-digest"
    assert (again, copied(out)) == ((1, COPIED["all others"]) if is_wrong_for_good else (0, URLS))


def copied(out: Path) -> list[str]:
    """The URLs of a copy, whose files are complete."""
    found = []
    for path in sorted(out.glob("*.warc.gz")):
        with path.open("rb") as file:
            _, *urls = (record.rec_headers.get_header("WARC-Target-URI") for record in ArchiveIterator(file))
        assert len((out / path.name.replace(".warc.gz", ".cdxj")).read_bytes().splitlines()) == len(urls)
        found += urls
    return sorted(found)
