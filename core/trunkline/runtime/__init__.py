"""The life cycle of workers, the supervisor, and the connection to the bus. The code names no particular worker."""
