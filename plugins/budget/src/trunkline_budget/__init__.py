"""Budgets: limits of what models may cost and of how often they may be called."""
