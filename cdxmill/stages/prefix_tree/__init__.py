"""Writes and reads prefix B-trees, on streams and functions that the caller gives."""
