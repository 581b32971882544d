"""What the user named -> inputs: archives, CDX files, pipes; and the archives that index lines name, read in ranges."""
