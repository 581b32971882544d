"""`cdxmill copy` from two archives with one name: a record is its place, its time and its URL."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill


@pytest.fixture(scope="module")
def twins(pywb_warcs: Path, tmp_path_factory: pytest.TempPathFactory, run_cdxmill: RunCdxmill) -> Path:
    """Two archives of one name, indexed apart, in all.cdxj, and places.tsv with both of them.

    A record of each is at the same offset, and has the same timestamp.
    """
    directory = tmp_path_factory.mktemp("twins")
    for number, name in enumerate(("iana.warc.gz", "dupes.warc.gz")):
        archive = directory / str(number) / "c.warc.gz"
        archive.parent.mkdir()
        archive.write_bytes((pywb_warcs / name).read_bytes())
        assert run_cdxmill("index", "-q", "-o", directory / f"{number}.cdxj", archive).returncode == 0
    lines = [line for number in (0, 1) for line in (directory / f"{number}.cdxj").read_bytes().splitlines()]
    (directory / "all.cdxj").write_bytes(b"".join(line + b"\n" for line in sorted(lines)))
    (directory / "places.tsv").write_text(f"c.warc.gz\t{directory}/0/c.warc.gz\t{directory}/1/c.warc.gz\n")
    return directory


@pytest.mark.parametrize("related", [(), ("--related",)])
def test_records_of_two_archives_with_one_name_are_all_copied(
    related: tuple[str, ...], twins: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    call = ["copy", *related, "-o", tmp_path / "out", "--archives", twins / "places.tsv", twins / "all.cdxj"]
    assert run_cdxmill(*call).returncode == 0
    found = Counter(
        line.split(b" ")[0] for line in (tmp_path / "out/out-00000.cdxj").read_bytes().splitlines()
    )
    wanted = Counter(line.split(b" ")[0] for line in (twins / "all.cdxj").read_bytes().splitlines())
    assert found == wanted
    again = run_cdxmill(*call)
    assert again.returncode == 0
    assert b" in 0 files, 183 captures already there" in again.stderr


def test_a_capture_that_a_tree_gave_is_known_when_a_file_of_lines_gives_it(
    twins: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    assert run_cdxmill("prefix-index", "build", "-o", tmp_path / "t.tree", twins / "0.cdxj").returncode == 0
    for source in (tmp_path / "t.tree", twins / "0.cdxj"):
        done = run_cdxmill("copy", "-o", tmp_path / "out", "--archives", twins / "0", source, "*.org")
        assert done.returncode == 0, done.stderr
    assert b"171 captures already there" in done.stderr


@pytest.mark.parametrize("form", ["{0}\t{1}/1/{0}\t{1}/0/{0}\n", "{0}\t{1}/1/{0}\n{0}\t{1}/0/{0}\n"])
@pytest.mark.parametrize("command", ["copy -o out", "get", "verify"])
def test_the_archive_whose_record_matches_is_read(
    form: str, command: str, twins: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    """The place that is listed first is tried first, and has another archive of this name."""
    (name,) = (path.name for path in (twins / "0").iterdir())
    (tmp_path / "paths.txt").write_text(form.format(name, twins))
    if command == "verify":
        assert (
            run_cdxmill("zipnum", "-q", "-s", "1", "-o", "c", twins / "0.cdxj", cwd=tmp_path).returncode == 0
        )
        done = run_cdxmill("verify", "c", "--archives", "paths.txt", cwd=tmp_path)
    else:
        url = "http://www.iana.org/" if command == "get" else "*"
        call = [*command.split(), twins / "0.cdxj", url, "--archives", "paths.txt"]
        done = run_cdxmill(*call, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
