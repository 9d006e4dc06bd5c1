"""The gateway: authentication, messages, subjects and a client."""
