"""The Matrix channel: an account through which the owner talks with agents and decides about their calls."""
