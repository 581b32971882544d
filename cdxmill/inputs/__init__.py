"""What the user named -> files: archives, CDX files, split files; and how CDX files are sorted and sampled."""
