"""Options of commands that write archives again: `recompress`, `reindex` and `train-dictionary`, and of comparing archives."""

from typing import Any

from cdxmill.options.archives import ArchiveInputs
from cdxmill.options.option import (
    DICTIONARY,
    REPLACE,
    AnyPath,
    EngineOptions,
    Excludes,
    Existing,
    Needs,
    Options,
    Paths,
    Running,
    argument,
    option,
)


class Training(Running, ArchiveInputs):
    """The arguments of `train-dictionary`. Without `id`, the id of the dictionary depends on its content."""

    size: int = option(
        "--size N",
        "Largest size of the dictionary, in KiB. It never gets larger than an eighth of the sample.",
        default=1024,
        min=1,
        max=8192,
    )
    id: int | None = option(
        "--id N",
        "Id of the dictionary. Default: computed from its content.",
        default=None,
        min=32768,
        max=2**31 - 1,
    )
    level: int = option(
        "--level N", "Level of the frames that will be written with it.", default=6, min=1, max=22
    )
    seed: int = option("--seed N", "Seed of the random sample.", default=0)
    replace: bool = REPLACE
    output: AnyPath = option(
        "--output -o FILE", "Dictionary to write: path, s3 or hdfs URL. FILE.json is written beside it."
    )


MAX_WINDOW: Any = option(
    "--max-window N",
    "Read Zstandard frames that need a window of at most N MiB. Each process may need that much memory.",
    default=128,
    min=8,
    max=2048,
)
ANY_DIGEST: Any = option(
    "--any-digest",
    "Accept records whose bytes do not have the digest in their header. They are counted, and are not failures.",
    default=False,
)


class Compressing(Options):
    """How records are compressed again."""

    to: str = option("--to FORMAT", "Format to write: zst or gz.", default="zst", choices=("zst", "gz"))
    dictionary: AnyPath | None = option(
        "--dictionary FILE",
        "zstd dictionary, path or URL, from cdxmill train-dictionary. It becomes a part of each new archive in which it"
        " saves more bytes than it takes. Default: the one that the archive has. Archives that do not contain theirs are read with it, too.",
        default=None,
    )
    drop_dictionary: bool = option(
        "--drop-dictionary",
        "Do not keep the dictionary of a Zstandard archive.",
        Needs("to=zst"),
        Excludes("dictionary"),
        default=False,
    )
    level: int = option("--level", "Compression level. gz: 12 at most.", default=6, min=1, max=22)
    max_window: int = MAX_WINDOW


class Repacking(Compressing, Existing):
    """How archives are written again, and where: what `recompress` and its job have in common."""

    output: AnyPath | None = option(
        "--output -o DIR",
        "Directory, s3 or hdfs URL for the new archives. Needed without --estimate.",
        default=None,
    )
    group: bool = option(
        "--group",
        "Compress the request, the response and the metadata of a capture together. The archive is smaller, but"
        " breaks the specification: no reader can get a single one of these records, and cdxmill cannot index it.",
        Excludes("index", "offsets"),
        default=False,
    )
    index: bool = option(
        "--index", "Write the CDXJ index of each new archive, too, beside it.", default=False
    )
    offsets: bool = option(
        "--offsets",
        "Write a table of the old and the new offsets beside each new archive, too, for cdxmill reindex.",
        default=False,
    )
    any_digest: bool = ANY_DIGEST
    keep_damaged: bool = option(
        "--keep-damaged",
        "Carry damaged parts over as they are, each as the block of a record that gets no index line. So the new archive"
        " lacks nothing of the old one.",
        default=False,
    )
    describe: bool = option(
        "--describe",
        "Add a metadata record to the end of each new WARC file: the old file and its SHA-256, and how it was written again.",
        default=False,
    )


class Recompressing(Repacking, ArchiveInputs, EngineOptions):
    """The arguments of `recompress`."""

    estimate: bool = option(
        "--estimate",
        "Write nothing. Print the size that the new archives would have, by kind of content, and the time it would take.",
        Excludes("output", "index", "offsets", "group", "update", "replace", "engine=spark"),
        default=False,
        init=False,
    )


class Estimating(Compressing, ArchiveInputs, Running):
    """The parameters of `recompress_estimate`."""


class Comparing(Running):
    """The parameters of `verify_archives`."""

    old: AnyPath = argument("OLD", "Archive or directory: path or URL.", kw_only=False)
    new: AnyPath = argument("NEW", "Archive or directory that recompress wrote: path or URL.", kw_only=False)
    any_digest: bool = ANY_DIGEST
    max_window: int = MAX_WINDOW
    dictionary: AnyPath | None = DICTIONARY


class Reindexing(Running):
    """The arguments of `reindex`."""

    inputs: Paths = argument(
        "CDX...",
        "CDX files, directories, globs or URLs.",
        kw_only=False,
    )
    output: AnyPath = option("--output -o DIR", "Directory, s3 or hdfs URL for the new index files.")
    offsets: Paths = option(
        "--offsets FILE",
        "Table of offsets that cdxmill recompress --offsets wrote: path, directory, glob or URL. Give it several"
        " times if there are several.",
    )
    replace: bool = REPLACE
