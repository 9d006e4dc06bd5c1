"""What an agent can ask of the platform it lives on, and of the person behind it."""
