"""Records -> captures and their CDX lines."""
