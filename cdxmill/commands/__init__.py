"""One verb a file: each wires storage to stages and reports."""
