"""Tools for commands, project checks and background tasks. The programs run in the sandbox."""
