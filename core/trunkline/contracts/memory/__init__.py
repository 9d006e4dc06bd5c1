"""Memory: the store's contract, messages, subjects and the client that tools use."""
