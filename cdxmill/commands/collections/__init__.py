"""Commands that change a cluster: one file each, and what they share."""
