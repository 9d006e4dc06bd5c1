"""OpenAI's API over the gateway's services: chat completions, files, embeddings and audio. Each block is a model."""
