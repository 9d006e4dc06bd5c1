"""The adapter that needs no model and no network: it finds and quotes what memory holds."""

from trunkline_offline.adapter import OfflineAdapter

__all__ = ["OfflineAdapter"]
