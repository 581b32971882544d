"""What a user asks `scan` for: inputs are found, options read, outputs named."""

from __future__ import annotations

import os

from cdxmill.commands.scanning.options import ScanOptions
from cdxmill.commands.scanning.rows import WET
from cdxmill.commands.scanning.scan import ScanSummary, ending_of, scan, scanned_name
from cdxmill.errors import UsageError
from cdxmill.inputs.archives import OpenAll, find_archives, open_here
from cdxmill.options.contents import Scanning
from cdxmill.options.option import check_no_pipe, optional_path, text_list
from cdxmill.outputs.existing import rule_of
from cdxmill.outputs.names import output_names
from cdxmill.outputs.record import without_outputs
from cdxmill.running.failures import Failures
from cdxmill.running.processes import RunTasks
from cdxmill.stages.scan.fields import DEFAULT, LINES


def scan_asked(
    asked: Scanning, failures: Failures, run: RunTasks | None = None, open_all: OpenAll = open_here
) -> ScanSummary:
    """Scan archives; `run` is another engine, and `open_all` opens WACZ files on it. Raises UsageError, StoppedError."""
    check_no_pipe(asked.inputs, "an archive from a pipe has no name for its output; give a file")
    options, output, to = _scan_options(asked), os.fspath(asked.output), asked.to
    archives = without_outputs(find_archives(asked, failures, open_all=open_all), output, failures.note)
    names = output_names(archives, lambda path: scanned_name(path, to), ending_of(to))
    return scan(names, output, options, failures, optional_path(asked.captures), run)


def _scan_options(asked: Scanning) -> ScanOptions:
    return ScanOptions(
        where=text_list(asked.where or ()),
        extract=_fields(asked),
        finds=text_list(asked.find or ()),
        calls=text_list(asked.call or ()),
        page_calls=text_list(asked.call_page or ()),
        to=asked.to,
        detector=asked.detector,
        sample=None if asked.sample is None else str(asked.sample),
        seed=asked.seed or 0,
        seconds=asked.timeout,
        memory=asked.memory << 20,
        processes=asked.processes,
        existing=rule_of(asked),
        quiet=asked.quiet,
    )


def _fields(asked: Scanning) -> str:
    """The fields to write. Raises UsageError if a WET file cannot have them."""
    if asked.to not in WET:
        return DEFAULT if asked.extract is None else asked.extract
    name = LINES[0] if asked.extract is None else asked.extract.strip()
    if name not in (*LINES, "text"):
        raise UsageError(
            f"--to {asked.to} writes texts; expected --extract {', '.join(LINES)} or text, not {name}"
        )
    return name
