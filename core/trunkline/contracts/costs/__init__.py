"""Costs: the ledger of requests to models, and the counters of budgets."""
