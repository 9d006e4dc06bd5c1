"""The sandbox backends bubblewrap and Docker."""
