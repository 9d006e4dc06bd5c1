"""``trunkline certificate``: a certificate of its own for the gateway."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.config import Config
    from trunkline.runtime.http.server_certificate import ServerCertificate

EXAMPLES = """
trunkline certificate
trunkline certificate --name agents.lan --name 192.168.1.20
trunkline certificate --show
trunkline certificate --replace
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--name", "names", multiple=True, help="A further host name or IP address; may be repeated.")
@click.option("--replace", is_flag=True, help="Replace the certificate that was made before.")
@click.option("--show", is_flag=True, help="Show the certificate in use, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(names: tuple[str, ...], replace: bool, show: bool, as_json: bool) -> None:
    """Make a self-signed certificate, so that other machines of your network reach the gateway with TLS.

    The certificate is for the names of this machine and those that you add. No authority vouches for it: a browser asks
    once, and you compare the fingerprint that this command shows. The settings name the files from then on.
    """
    from trunkline.cli.output import print_json
    from trunkline.config import load_config
    from trunkline.runtime.http.gateway_certificate import is_loopback

    config = load_config()
    found = _in_use(config) if show else _made(config, names, replace)
    facts = {
        "certificate": str(found.certificate), "key": str(found.key), "expires": found.expires,
        "names": list(found.names), "fingerprint": found.fingerprint,
    }  # fmt: skip
    if as_json:
        return print_json(facts)
    click.echo(f"Certificate: {found.certificate}\nKey:         {found.key}")
    click.echo(f"Names:       {', '.join(found.names)}\nValid until: {found.expires.date()}")
    click.echo(f"SHA-256:     {found.fingerprint}")
    if not show and is_loopback(config.settings.gateway.host):
        click.echo('The gateway listens on this machine only. To open it: gateway.host = "0.0.0.0"')
    if not show:
        click.echo("Trunkline uses it from its next start.")


def _in_use(config: "Config") -> "ServerCertificate":
    from trunkline.errors import ConfigError
    from trunkline.runtime.http.gateway_certificate import gateway_certificate

    found = gateway_certificate(config.settings.gateway)
    if found is None:
        raise ConfigError("The gateway has no certificate.", hint="Make one: trunkline certificate")
    return found


def _made(config: "Config", names: tuple[str, ...], replace: bool) -> "ServerCertificate":
    from trunkline.config.editor import write_settings
    from trunkline.errors import ConfigError
    from trunkline.home.paths import storage_errors
    from trunkline.runtime.http.owner_certificate import (
        CERTIFICATE_FILE,
        FOLDER,
        KEY_FILE,
        machine_names,
        make_self_signed,
    )
    from trunkline.runtime.http.server_certificate import CERTIFICATE, KEY, ServerCertificate

    gateway, folder = config.settings.gateway, config.home / FOLDER
    target = folder / CERTIFICATE_FILE
    if gateway.tls_certificate not in (None, target):
        raise ConfigError(
            f"The gateway uses the certificate {gateway.tls_certificate}.",
            hint=f"To use one of its own instead, remove {CERTIFICATE} and {KEY} from {config.file} first.",
        )
    if target.exists() and not replace:
        raise ConfigError(
            f"{target} exists.",
            hint="Show it with --show. --replace makes a new one, with a new fingerprint.",
        )
    with storage_errors(folder):
        try:
            certificate, key = make_self_signed(folder, (*machine_names(), *gateway.allowed_hosts, *names))
        except ValueError as error:
            raise ConfigError(f"The certificate cannot have such a name: {error}.") from error
    write_settings(config.file, {CERTIFICATE: f"{FOLDER}/{CERTIFICATE_FILE}", KEY: f"{FOLDER}/{KEY_FILE}"})
    return ServerCertificate.read(certificate, key)
