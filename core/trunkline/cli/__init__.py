"""The command line. Each command is one module with a ``command``; ``main`` imports only the command that runs."""
