"""Approvals: the messages about calls that wait for a person, and a client that watches them."""
