"""A table of ids for each of the five specifications."""
