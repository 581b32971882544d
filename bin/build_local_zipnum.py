#!/usr/bin/env python3
"""Build a ZipNum cluster from CDX files on this machine, without Hadoop.

    bin/build_local_zipnum.py CLUSTER -s 25 -p '/path/to/cdx/*.cdx.gz'

It has the options of the script of the same name in webarchive-indexing. It calls `cdxmill zipnum`, which
has more options.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from cdxmill.cli.main import main as cdxmill


def main() -> int:
    """Call `cdxmill zipnum` and return its exit status."""
    parser = ArgumentParser(description="Build a ZipNum cluster from CDX files. See cdxmill zipnum --help.")
    parser.add_argument("output", help="directory of the cluster")
    parser.add_argument("inputs", nargs="+", help="CDX files, directories or globs")
    parser.add_argument("-s", "--shards", default=10, type=int, help="number of shards (default 10)")
    parser.add_argument("-l", "--numlines", default=3000, type=int, help="lines per block (default 3000)")
    parser.add_argument("-p", "--parallel", action="store_true", help="use all cores instead of one")
    parser.add_argument("--convert", action="store_true", help="convert CDX lines with 6 fields to CDXJ")
    options = parser.parse_args()
    arguments = ["zipnum", "-o", options.output, "-s", str(options.shards)]
    arguments += ["--numlines", str(options.numlines)]
    arguments += ["-p", "0" if options.parallel else "1"]
    arguments += ["--convert"] if options.convert else []
    return cdxmill([*arguments, "--", *options.inputs])


if __name__ == "__main__":
    sys.exit(main())
