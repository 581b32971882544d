"""Formats of the files of a ZipNum cluster."""
