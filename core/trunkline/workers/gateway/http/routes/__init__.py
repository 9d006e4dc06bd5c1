"""The routes of the Gateway API under ``/conversations`` and ``/api``. Each calls the gateway's services."""
