"""Blocks of a ZipNum cluster: written, found, checked."""
