"""The gateway worker: who may enter, conversations, blocks, and the HTTP surface.

It never interprets or changes a message, runs a tool or picks a model. What channels ask over the bus and what
clients ask over HTTP ends in the same few services here.
"""
