"""The Model Context Protocol: a host for other people's servers, and a server of a block. The SDK loads when used."""
