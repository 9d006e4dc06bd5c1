"""The home folder: its paths, its version and migration, backup and restore, its releases, and the kill switch."""
