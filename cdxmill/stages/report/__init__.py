"""Adds up the lines of an index for a report."""
