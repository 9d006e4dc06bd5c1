"""Documents of many formats: readers, and tools to search what was read."""
