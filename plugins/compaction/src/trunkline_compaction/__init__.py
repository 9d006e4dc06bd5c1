"""Compaction: summaries in place of the first messages of long conversations."""
