"""Workflows: steps in a YAML file, which run as the tool calls of an ordinary turn."""
