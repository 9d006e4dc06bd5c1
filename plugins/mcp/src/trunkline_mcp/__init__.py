"""The Model Context Protocol: a client of MCP servers, and a server of one block. The SDK is imported on first use."""
