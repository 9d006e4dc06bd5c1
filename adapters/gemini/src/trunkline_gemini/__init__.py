"""The model adapter for Google's Gemini API."""
