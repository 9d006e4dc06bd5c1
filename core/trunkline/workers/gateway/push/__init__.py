"""Push notices at the gateway: the subscriptions of browsers, and the notices about approvals (ADR 85)."""
