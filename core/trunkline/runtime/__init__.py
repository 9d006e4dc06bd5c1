"""The life cycle of workers, the supervisor, and the connection to the bus. It knows no worker by name."""
