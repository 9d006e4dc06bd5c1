"""Passkeys (WebAuthn): checks what an authenticator signed, so that a browser signs in again without a code."""
