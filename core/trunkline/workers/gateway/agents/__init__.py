"""Agents at the gateway: their tasks are started, reported and ended here."""
