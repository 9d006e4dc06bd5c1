"""Routing of turns by the kind of work, and orchestration of large tasks."""
