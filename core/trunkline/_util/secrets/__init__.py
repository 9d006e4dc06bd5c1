"""Secrets in a text: keys that can be told by their look, and what stands beside a name such as ``password``.

``shapes`` is the table of looks · ``ways`` how a secret is written beside its name · ``values`` what is plainly none ·
``named`` and ``tables`` find by name · ``finding`` puts it together. Memory keeps out what is found (RLM-F21), and a
file that is brought in from elsewhere is left behind when it holds one.
"""

REDACTION_MARK = "[REDACTED]"

SECRET_NAMES = (
    *("api_key", "token", "password", "secret", "private_key"),  # RLM-F21
    *("passphrase", "passwd", "pwd", "access_key", "account_key", "passwort", "mot_de_passe", "contraseña"),
)
"""What secrets go by unless ``[memory] redact`` says otherwise."""
