"""Messages between workers: heartbeats, spans and panic."""
