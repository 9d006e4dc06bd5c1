"""Where programs run: backends that shut a program in, by bubblewrap or Docker."""
