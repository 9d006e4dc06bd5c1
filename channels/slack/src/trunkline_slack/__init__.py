"""The Slack channel: an app through which the owner talks with agents and decides about their calls."""
