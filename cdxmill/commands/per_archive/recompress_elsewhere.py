"""`recompress` on another machine: what all its tasks have in common, and one task. The engines send both there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cdxmill.commands.per_archive.recompress_one import (
    RecompressedArchive,
    RecompressOptions,
    RecompressTask,
    packer_of,
    recompress_one,
)
from cdxmill.errors import StoppedError


class RecompressWork(NamedTuple):
    """How every archive is written again. A dictionary is large, and sent once.

    `library` is the version of the compressor where the run was started.
    """

    options: RecompressOptions
    library: str

    @classmethod
    def of(cls, options: RecompressOptions) -> RecompressWork:
        """The work as this machine does it."""
        return cls(options, packer_of(options.to, options.level, b"").library)

    def without_dictionary(self, task: RecompressTask) -> RecompressTask:
        """A task as it is sent."""
        small = replace(self.options, dictionary=b"")
        return replace(task, options=small, settings=small.settings())

    def do(self, task: RecompressTask, scratch: Path) -> RecompressedArchive:
        """Write an archive again; `scratch` is for temporary files. Raises StoppedError if the compressor is another one."""
        options = self.options
        library = packer_of(options.to, options.level, b"").library
        if library != self.library:
            raise StoppedError(
                f"a node has {library}, this run was started with {self.library}; install the same version"
            )
        return recompress_one(replace(task, options=options, settings=options.settings(), scratch=scratch))
