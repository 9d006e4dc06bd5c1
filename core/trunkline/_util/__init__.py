"""General helpers that do not depend on the platform: text, paths, archives, secrets, TOML and JSON."""
