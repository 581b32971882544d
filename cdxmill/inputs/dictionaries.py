"""Zstandard dictionaries that a user names: to write archives with, or to read archives that do not contain theirs."""

from __future__ import annotations

import os
from pathlib import Path

from cdxmill.errors import InputError, UsageError, of_named_file
from cdxmill.options.option import AnyPath
from cdxmill.storage.location import locate

SENT = "cdxmill_dictionary"
"""Name of the file with the dictionary, in the working directory of a task on Hadoop."""


def read_dictionary(path: AnyPath) -> bytes:
    """The dictionary at a path or URL. Raises UsageError, StoppedError."""
    from cdxmill.formats.archives.zstd_dictionary import (
        LARGEST_READ,
        dictionary_id,
    )  # slow to import, as below

    name = os.fspath(path)
    try:
        data = locate(name).read_bytes()
        dictionary_id(data)
        if len(data) > LARGEST_READ:
            raise ValueError(
                f"is larger than {LARGEST_READ >> 20} MiB, and other programs cannot read such archives"
            )
    except InputError as error:
        raise of_named_file(error, "--dictionary: ") from None
    except ValueError as error:
        hint = "make one with cdxmill train-dictionary"
        raise UsageError(f"--dictionary: {name}: {error}; {hint}") from None
    return data


def use_dictionary(path: AnyPath | None) -> None:
    """Let this process, and those that it forks, read archives whose frames name the id of the dictionary. Raises UsageError, StoppedError."""
    if path is not None:
        from cdxmill.formats.archives.zstd_dictionary import know

        know(read_dictionary(path))


def use_sent_dictionary() -> None:
    """As `use_dictionary`, with the dictionary that was sent with the job, if there is one."""
    if Path(SENT).exists():
        from cdxmill.formats.archives.zstd_dictionary import know

        know(Path(SENT).read_bytes())
