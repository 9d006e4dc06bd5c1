"""OpenAI's Responses API over the gateway's services. A response is a turn."""
