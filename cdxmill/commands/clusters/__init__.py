"""Commands that build, check, move or serve a cluster."""
