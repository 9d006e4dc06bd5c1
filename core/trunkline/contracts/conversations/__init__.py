"""Conversations: messages, and the operations on stored conversations."""
