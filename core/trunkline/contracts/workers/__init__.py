"""Workers among themselves: liveness, spans and panic."""
