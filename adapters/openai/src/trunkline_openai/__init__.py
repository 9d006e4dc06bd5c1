"""The model adapter for OpenAI and everything that speaks its protocols (Ollama, vLLM, LM Studio, OpenRouter ...)."""
