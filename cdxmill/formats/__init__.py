"""Bytes to values and back, one format a file; nothing here opens, prints or logs."""
