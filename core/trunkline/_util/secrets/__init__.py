"""Finds secrets in a text: keys by their pattern, and values beside a name such as ``password``.

Memory does not store the secrets that are found. A file from another system that contains a secret is not imported.
"""

REDACTION_MARK = "[REDACTED]"

SECRET_NAMES = (
    *("api_key", "token", "password", "secret", "private_key"),
    *("passphrase", "passwd", "pwd", "access_key", "account_key", "passwort", "mot_de_passe", "contraseña"),
)
"""The default of ``[memory] redact``: the names of secrets."""
