"""Schedules: files in memory that send messages to an agent by the clock, and the tools and commands for them."""
