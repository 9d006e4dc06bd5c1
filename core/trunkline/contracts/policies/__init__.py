"""Policies and permissions: their records, and the permissions that go with a request."""
