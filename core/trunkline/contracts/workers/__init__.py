"""Workers among themselves: heartbeats, spans and panic."""
