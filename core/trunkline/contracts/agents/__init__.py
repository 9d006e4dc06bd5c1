"""Agents that work for other agents: their definitions, their tasks, and the results."""
