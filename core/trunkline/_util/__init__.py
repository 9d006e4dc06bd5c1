"""Pure helpers without knowledge of the platform: text, paths, archives, secrets, TOML and JSON that others wrote."""
