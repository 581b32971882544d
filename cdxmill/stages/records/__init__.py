"""Bytes of an archive -> records."""
