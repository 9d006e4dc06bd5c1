"""The public schemas of ``/conversations`` and ``/api``: requests, replies and events."""
