"""Finds secrets in a text: keys by their pattern, and values that stand beside a name such as ``password``.

Memory stores none of the secrets that are found. A file from elsewhere that holds one is not imported.
"""

REDACTION_MARK = "[REDACTED]"

SECRET_NAMES = (
    *("api_key", "token", "password", "secret", "private_key"),
    *("passphrase", "passwd", "pwd", "access_key", "account_key", "passwort", "mot_de_passe", "contraseña"),
)
"""The names of secrets unless ``[memory] redact`` says otherwise."""
