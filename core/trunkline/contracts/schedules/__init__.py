"""Schedules: the state of each schedule, and the message that the server stores when one is due."""
