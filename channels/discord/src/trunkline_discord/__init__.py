"""The Discord channel: a bot through which the owner talks with agents and decides about their calls."""
