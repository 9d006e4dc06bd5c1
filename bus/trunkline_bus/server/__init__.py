"""The nats-server that a platform may run itself, and its leaf nodes."""
