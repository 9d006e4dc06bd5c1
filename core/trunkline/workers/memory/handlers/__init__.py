"""The handlers of the memory worker: each translates the requests of some endpoints into calls of the store."""
