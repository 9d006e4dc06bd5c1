"""The adapter for another agent loop, over the contract ``POST /engine/chat``."""
