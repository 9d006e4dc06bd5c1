"""Documents: the protocol of readers, and the messages about documents of a conversation."""
