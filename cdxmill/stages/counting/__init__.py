"""Counts of what the records of archives contain: tags, servers, words, links."""
