"""The audit log: its entries and its subject."""
