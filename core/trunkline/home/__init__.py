"""The home folder: its paths, its version and migration, backup and restore, and the kill switch."""
