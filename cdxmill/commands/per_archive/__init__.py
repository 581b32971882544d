"""Commands that make one output of each archive."""
