"""Commands, checks of projects, and background tasks: programs in the sandbox."""
