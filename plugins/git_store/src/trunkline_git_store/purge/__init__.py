"""Removes a path, chunk or conversation from the files and from all of the git history."""
