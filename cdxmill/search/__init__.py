"""A question about URLs -> the lines of a cluster."""
