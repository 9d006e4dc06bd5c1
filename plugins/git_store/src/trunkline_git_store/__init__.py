"""The memory store that Trunkline uses by default: a git repository of plain files, with an index for search."""
