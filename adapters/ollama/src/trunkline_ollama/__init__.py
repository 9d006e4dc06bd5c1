"""The model adapter for Ollama, by its native API."""
