"""A block as an MCP server: its permitted tools and its memory, for other people's agents."""
