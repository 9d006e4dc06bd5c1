"""The TLS settings of the connections to both servers."""

import ssl

from trunkline import ConfigError
from trunkline_email.settings import EmailSettings


def tls_context(settings: EmailSettings) -> ssl.SSLContext:
    """Return a context that verifies certificates and host names. Raises ConfigError if ``ca_file`` cannot be read."""
    path = settings.ca_file.expanduser() if settings.ca_file is not None else None
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        raise ConfigError(
            f"channels.email.ca_file: {path} cannot be read as certificates: {error.strerror or error}",
            hint="Name a file of certificates in PEM format, or remove the setting.",
        ) from error
