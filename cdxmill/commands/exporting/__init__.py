"""export: the captures of a cluster as a table, as lines or as one WACZ file."""
