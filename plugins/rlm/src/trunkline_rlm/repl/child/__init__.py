"""The program of a session's process. Standard library only."""
