"""Bytes <-> values, one format per file. Nothing here opens, prints or logs."""
