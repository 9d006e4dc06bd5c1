"""The gateway worker: authentication, conversations, blocks, approvals and the HTTP server.

The gateway does not interpret or change messages, run tools or choose models. The bus endpoints and the HTTP handlers
call the same services.
"""
