"""Documents: readers of file formats, and the messages about documents of a conversation."""
