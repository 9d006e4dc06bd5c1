"""The WebSocket at ``/ws``: one socket carries every subscription of a client, and its messages to the gateway.

``envelopes`` are the wire format, ``turn_feed`` and ``platform_feed`` what all sockets share, ``connection`` is one
socket.
"""
