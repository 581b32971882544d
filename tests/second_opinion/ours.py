"""The answers of `cdxmill index` for the archives: its lines, and its reports on stderr."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from cdxmill.formats.own_records import parse_row

from .archives import Archive
from .peers import Row, normalised

REPORT = re.compile(r"(?P<directory>\d{4})/(?P<file>.*?)(?:@(?P<offset>\d+))?: (?P<reason>.*)")

MORE = "more notes of this kind"
NO_ARCHIVE = "no WARC or ARC record found"
SKIPPED = re.compile(r"(\d+) bytes skipped")


class Report(NamedTuple):
    """One report about an archive. `offset` is None if it is about the whole file."""

    offset: int | None
    reason: str

    @property
    def is_note(self) -> bool:
        """Whether it is a note, which costs no line."""
        return self.reason.startswith("note: ")

    def covers(self, offset: int) -> bool:
        """Whether the report accounts for a record that starts at `offset` and has no line."""
        if self.is_note:
            return False
        if self.offset is None or NO_ARCHIVE in self.reason:
            return True
        skipped = SKIPPED.search(self.reason)
        size = int(skipped[1]) if skipped else 1
        return self.offset <= offset < self.offset + size


class Ours(NamedTuple):
    """Rows by offset, and the reports."""

    rows: dict[int, Row]
    reports: list[Report]


class Shown(NamedTuple):
    """What the command printed, and its list of failures."""

    stderr: str
    listed: bytes


class Run(NamedTuple):
    """One run of the command over all archives."""

    answers: dict[str, Ours]
    status: int
    strange: list[str]


def index_all(archives: list[Archive], directory: Path) -> Run:
    """Index all archives in one call of the command. Each archive is in a numbered directory of its own.

    Many samples have the same name. The number of the directory tells to which archive an output or a
    message belongs.
    """
    for number, archive in enumerate(archives):
        place = directory / "in" / f"{number:04d}"
        place.mkdir(parents=True)
        (place / archive.path.name).symlink_to(archive.path)
    inputs = sorted(f"{path.parent.name}/{path.name}" for path in (directory / "in").glob("*/*"))
    (directory / "inputs.txt").write_text("\n".join(inputs))
    options = ["-q", "-p", "2", "--manifest", str(directory / "inputs.txt"), "-o", str(directory / "out")]
    command = [sys.executable, "-m", "cdxmill", "index", *options]
    run = subprocess.run(command, cwd=directory / "in", capture_output=True, text=True, check=False)
    if run.returncode not in (0, 1):
        raise RuntimeError(f"cdxmill index ended with {run.returncode}:\n{run.stderr[-4000:]}")
    listed = directory / "out/failures.tsv"
    shown = Shown(run.stderr, listed.read_bytes() if listed.exists() else b"")
    answers = {archive.name: Ours(_rows(directory / "out", n), []) for n, archive in enumerate(archives)}
    return Run(answers, run.returncode, _share_out(shown, archives, answers))


def _rows(out: Path, number: int) -> dict[int, Row]:
    rows: dict[int, Row] = {}
    for path in (out / f"{number:04d}").glob("*.cdx.gz"):
        for line in gzip.decompress(path.read_bytes()).decode("utf-8").split("\n")[:-1]:
            row = normalised(line)
            assert int(row["offset"]) not in rows, f"two lines for one record: {line}"
            rows[int(row["offset"])] = row
    return rows


def _share_out(run: Shown, archives: list[Archive], answers: dict[str, Ours]) -> list[str]:
    """Give each archive its reports: the failures of the list, which is complete, and the notes of stderr.

    Returns the lines of stderr that name no archive.
    """
    for row in run.listed.splitlines():
        path, offset, reason, hint = parse_row(row)
        report = Report(int(offset) if offset else None, f"{reason}; {hint}" if hint else reason)
        answers[archives[int(Path(path).parent.name)].name].reports.append(report)
    strange = []
    for line in run.stderr.splitlines():
        match = REPORT.search(line)
        if match is None and MORE not in line:
            strange.append(line)
        elif match is not None and match["reason"].startswith("note: "):
            report = Report(int(match["offset"]), match["reason"])
            answers[archives[int(match["directory"])].name].reports.append(report)
    return strange
