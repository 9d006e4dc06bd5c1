"""The command line. Each command is a module with a ``command``; ``main`` imports only the one that is used."""
