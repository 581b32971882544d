"""Work on whole inputs: group, sort and sample CDX files, sample records, make the items of a prefix B-tree."""
