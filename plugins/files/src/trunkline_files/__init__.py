"""File tools for a block's workspace."""
