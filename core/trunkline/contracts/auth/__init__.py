"""Identities and access tokens: their records, the scopes of a token, and the operations of the gateway about them."""
