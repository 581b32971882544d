"""Formats of archives: WARC, ARC, HTTP heads, gzip, Zstandard, zip."""
