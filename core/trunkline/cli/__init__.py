"""The command line. Each command is a module with a ``command`` object; ``main`` imports only the command that runs."""
