"""CDX lines: cut, sorted, merged, sampled."""
