"""Memory tools for agents."""
