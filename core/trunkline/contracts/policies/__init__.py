"""Policies and permissions: their records, and the permissions that a request carries."""
