"""The contracts between workers, plugins and clients. One package per domain holds messages, subjects and clients."""
