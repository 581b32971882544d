#!/usr/bin/env python3
"""Build a ZipNum cluster from CDX files on this machine, without Hadoop.

    bin/build_local_zipnum.py CLUSTER -s 25 -p '/path/to/cdx/*.cdx.gz'

Takes the same arguments as the script of webarchive-indexing. `cdxmill zipnum` does the work, and
has more options.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from cdxmill.cli.main import main as cdxmill


def main() -> int:
    """Read the options and build. Returns the exit status of `cdxmill zipnum`."""
    parser = ArgumentParser(
        description="Build a ZipNum cluster from CDX files. See also cdxmill zipnum --help."
    )
    parser.add_argument("output", help="directory of the cluster")
    parser.add_argument("inputs", nargs="+", help="CDX files, directories, patterns")
    parser.add_argument("-s", "--shards", default=10, type=int, help="number of shards (default 10)")
    parser.add_argument("-l", "--numlines", default=3000, type=int, help="lines per block (default 3000)")
    parser.add_argument("-p", "--parallel", action="store_true", help="use all cores instead of one")
    parser.add_argument("--convert", action="store_true", help="convert CDX lines with 6 fields to CDXJ")
    options = parser.parse_args()
    arguments = [
        "zipnum",
        "-o",
        options.output,
        "-s",
        str(options.shards),
        "--numlines",
        str(options.numlines),
    ]
    arguments += ["-p", "0" if options.parallel else "1"]
    arguments += ["--convert"] if options.convert else []
    return cdxmill([*arguments, "--", *options.inputs])


if __name__ == "__main__":
    sys.exit(main())
