"""Removes a path, chunk or conversation from memory and from all of its history."""
