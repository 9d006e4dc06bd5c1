"""Channels: the protocol of a channel and the requests that it answers."""
