"""Push notices: what a browser is told about approvals while its tab is closed (ADR 85)."""
