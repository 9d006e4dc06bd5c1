"""The parts that every HTTP server here shares: authentication, limits, and serving on a socket."""
