"""Sequences of commands on one directory, each compared with the same end state that is reached in one step."""
