"""The sandbox: its contract, what a program is begun with, and what is told of its end."""
