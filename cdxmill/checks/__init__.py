"""What `verify` checks, one file per comparison."""
