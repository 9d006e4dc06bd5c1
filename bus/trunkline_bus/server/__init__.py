"""The nats-server that the platform runs as a child process, and its leaf nodes."""
