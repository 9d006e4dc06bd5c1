"""What runs in the process of a session. Standard library only."""
