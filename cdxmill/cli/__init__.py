"""The command line: the commands of a family in one file, each with its options, its help and the call."""
