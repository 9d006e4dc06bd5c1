"""Programs in containers, by a Docker engine."""
