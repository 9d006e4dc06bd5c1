"""The adapter for another agent loop, over the contract ``POST /engine/chat``."""

from trunkline_engine.adapter import EngineAdapter
from trunkline_engine.settings import EngineSettings

__all__ = ["EngineAdapter", "EngineSettings"]
