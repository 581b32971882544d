"""A query about URLs -> the lines of a cluster."""
