"""Search and pages of the web for agents."""
