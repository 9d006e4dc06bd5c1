"""Channels: the protocol of a channel and what may be asked of one."""
