"""Agents that work for an agent: their types, and the tools that give them tasks."""
