"""The model adapter for Anthropic and the servers that offer its Messages API."""
