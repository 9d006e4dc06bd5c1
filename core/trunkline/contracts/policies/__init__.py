"""Policies and permissions: their records, and the permissions that travel with a request."""
