"""The model adapter for OpenAI and everything that speaks its protocols (Ollama, vLLM, LM Studio, OpenRouter ...)."""

from trunkline_openai.adapter import OpenAIAdapter
from trunkline_openai.settings import OpenAISettings

__all__ = ["OpenAIAdapter", "OpenAISettings"]
