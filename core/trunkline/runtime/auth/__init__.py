"""Access tokens at run time: the key in the home, and the registry that every process with an HTTP port consults."""
