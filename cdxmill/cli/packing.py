"""The commands that write archives again, or prepare it: their help and the calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdxmill.cli.command import open_engine
from cdxmill.options.packing import Recompressing, Reindexing, Training

if TYPE_CHECKING:
    from cdxmill.running.failures import Failures


def recompress(arguments: Recompressing, failures: Failures) -> str:
    """Write archives again, compressed as Zstandard or as gzip.

    INPUT is an archive, directory, glob or URL (http, https, s3, hdfs). cdxmill writes one archive per input, with
    the same relative path; .gz in the name becomes .zst, and the other way round. Its records have the same bytes and the
    same order. Each record is in a member or frame of its own, whatever it was in before. So cdxmill also repairs
    archives that are compressed in one piece, or in blocks.

    Of the programs that replay archives, pywb reads .zst if cdxmill serve starts it. Otherwise pywb, warcio and wabac.js
    (ReplayWeb.page) read .gz only. Skippable frames of a .zst, and its dictionary, are not copied.

    A corrupt or truncated record is skipped, and reported on stderr and in DIR/failures.tsv, or, if DIR is a URL, in
    a file beside the output, _NAME.failures. Each record that is written is decompressed again and compared, and each file is
    read back before it gets its name. A record whose bytes do not have the digest in its header is written as it is, and
    reported. NAME.proof.json has the checksums of the old file, of the new one and of the records; cdxmill verify OLD NEW
    compares both files with each other and with it.

    If you run it again, outputs that are up to date are kept. cdxmill never overwrites any other output unless
    you say --update (write archives that are newer or failed) or --replace (write all again).

    Examples:
        cdxmill recompress --estimate warcs/
        cdxmill recompress -o zst warcs/ && cdxmill verify warcs/ zst/
        cdxmill recompress --to gz -o gz zst/
        cdxmill recompress -o moved --offsets warcs/
    """
    from cdxmill.commands.per_archive.ask import estimate_asked, recompress_asked

    if arguments.estimate:
        return str(estimate_asked(arguments, failures))
    with open_engine(arguments) as spark:
        if spark is None:
            return str(recompress_asked(arguments, failures))
        return str(recompress_asked(arguments, failures, spark.recompress, spark.open_all))


def reindex(arguments: Reindexing, failures: Failures) -> str:
    """Rewrite an index for archives that were written again.

    CDX is an index file of the old archives: CDXJ or CDX, gzipped or not. For each one, cdxmill writes an index file of
    the same name, with the new file names, offsets and lengths. All other bytes of a line stay. The lines are sorted. The
    archives themselves are not read. Lines of other archives are copied.

    A line is skipped and reported if the table of its archive has no record with its offset and length. Then the
    index was made from another state of the archive, and the exit status is 1. Failures are also listed
    in DIR/failures.tsv, or, if DIR is a URL, in a file beside the output, _NAME.failures.

    If you run it again, outputs that are up to date are kept. cdxmill never overwrites any other output unless
    you say --replace.

    Examples:
        cdxmill reindex -o cdx-moved --offsets moved cdx/
    """
    from cdxmill.commands.per_archive.ask import reindex_asked

    return str(reindex_asked(arguments, failures))


def train_dictionary(arguments: Training, failures: Failures) -> str:
    """Train a Zstandard dictionary for archives.

    INPUT is a WARC or ARC file, directory, glob or URL. Give archives of one crawl and of one kind, such as WARC
    or WAT, and at least two of them. cdxmill reads all of them and takes a uniform sample of their records: 128 MiB at
    most, the first 128 KiB of each record. Some archives are held out, so the dictionary is not trained on
    them. cdxmill prints what it saves there.

    FILE is a dictionary that zstd and its libraries can read. FILE.json has its statistics.

    Examples:
        cdxmill train-dictionary -o crawl.dict warcs/
    """
    from cdxmill.commands.train_dictionary import train_dictionary as train
    from cdxmill.inputs.archives import find_archives

    return str(train(find_archives(arguments, failures), arguments, failures))
