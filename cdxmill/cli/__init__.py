"""The command line: one file per command with its options, its help and the call."""
