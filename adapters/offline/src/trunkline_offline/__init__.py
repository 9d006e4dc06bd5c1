"""The adapter without a model or network: it searches memory and quotes what it finds."""

from trunkline_offline.adapter import OfflineAdapter

__all__ = ["OfflineAdapter"]
