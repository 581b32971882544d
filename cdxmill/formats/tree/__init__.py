"""The prefix B-tree."""
