"""The gateway worker: authentication, conversations, blocks, approvals and the HTTP server.

It does not interpret or change a message, run a tool or pick a model. Requests over the bus and requests over HTTP end
in the same services.
"""
