"""The settings service: shows settings by section, and changes them in ``trunkline.toml``. Callers check that the
owner asks."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from trunkline._util.secrets.redactor import Redactor
from trunkline.config import Config, ConfigProblem, InvalidConfig, Secret
from trunkline.errors import ConfigError, ErrorCode
from trunkline.plugins import Plugins
from trunkline.plugins.settings_editor import SettingsEditor
from trunkline.runtime.adapter_selection import AUTO
from trunkline.runtime.audit_log import AuditLog
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.panic_service import EVERY_BLOCK
from trunkline.workers.gateway.settings_forms import HIDDEN, SettingsForm, settings_forms

IN_THE_FILE = "It is changed in trunkline.toml, on the machine of Trunkline."
NOT_A_SECRET = (
    "It seems to be a secret. Put it into an environment variable, and give the name of the variable."
)
ELSEWHERE = "Keys are sent to this address. One of another machine is set in trunkline.toml alone."
NO_ADAPTER = "There is no model adapter of this name, and Trunkline would not start. It is one of {names}."
BROKEN = "trunkline.toml has a problem of its own: trunkline doctor says which."


@dataclass(frozen=True, slots=True)
class ShownSettings:
    """A section with its values. ``locked`` are the fields that the environment sets, ``secrets`` the variables that
    the values refer to, each with whether it is set. ``restart_needed`` says that the file differs from what this
    process started with.
    """

    form: SettingsForm
    values: Mapping[str, Any]
    locked: Mapping[str, str]
    secrets: Mapping[str, bool]
    restart_needed: bool


class SettingsService:
    """Methods raise Refusal: ``not_found`` for an unknown section, and ``conflict`` if the file cannot be read or
    written.

    Guarantees: no value of a secret is returned, stored in the file or recorded in the audit log. The file is only
    replaced by valid settings. No setting is changed that its schema calls ``readOnly``. No address of another machine
    is set to which a secret may be sent: whoever has a session of the owner could name any variable as the key for it.
    """

    def __init__(self, config: Config, plugins: Plugins, audit: AuditLog) -> None:
        self._started = config
        self._plugins = plugins
        self._audit = audit
        self._keys = Redactor(names=())
        self._order = anyio.Lock()

    async def list_sections(self) -> tuple[ShownSettings, ...]:
        """Return all sections that have a form."""
        now = await self._read()
        return tuple(self._show(form, now) for form in self._forms())

    async def change(self, section: str, values: Mapping[str, Any], actor: str) -> ShownSettings:
        """Set fields of a section, or remove them for None, and return the section.

        Refused with ``invalid_request`` and the field for a value that is not valid or must not be changed here.
        """
        form = next((one for one in self._forms() if one.id == section), None)
        if form is None:
            raise refusal(ErrorCode.NOT_FOUND)
        async with self._order:
            now = await self._read()
            locked = form.locked(now)
            prefix, present = ".".join(form.key(now)), form.values(now)
            changes = {
                f"{prefix}.{name}": self._checked(form, locked, name, value, present.get(name))
                for name, value in values.items()
            }
            after = await self._write(changes)
        names = ", ".join(sorted(values))
        await self._audit.record(
            event="settings",
            block=EVERY_BLOCK,
            actor=actor,
            by=(actor,),
            why=f"Changed in {section}: {names}.",
        )
        return self._show(form, after)

    def _forms(self) -> tuple[SettingsForm, ...]:
        return settings_forms(self._plugins.config_sections())

    @property
    def _editor(self) -> SettingsEditor:
        return SettingsEditor(self._started, [one.item for one in self._plugins.config_sections()])

    async def _read(self) -> Config:
        try:
            return await anyio.to_thread.run_sync(self._editor.read)
        except ConfigError as error:
            raise refusal(ErrorCode.CONFLICT, BROKEN) from error

    async def _write(self, changes: Mapping[str, Any]) -> Config:
        try:
            return await anyio.to_thread.run_sync(self._editor.change, changes)
        except InvalidConfig as error:
            problem = next((one for one in error.problems if _is_about(one, changes)), None)
            if problem is None:
                raise refusal(ErrorCode.CONFLICT, BROKEN) from error
            reason = f"It {problem.what}. {problem.hint}".strip()
            raise InvalidField(("values", _field(problem.key, changes)), reason) from error
        except ConfigError as error:  # of the section's own check, or of the file
            named = next((key for key in changes if key in error.sentence), None)
            if named is None and str(self._started.file) in error.sentence:
                raise refusal(ErrorCode.CONFLICT, BROKEN) from error
            field = ("values",) if named is None else ("values", named.rpartition(".")[2])
            raise InvalidField(field, f"{error.sentence} {error.hint}".strip()) from error

    def _checked(
        self, form: SettingsForm, locked: Mapping[str, str], name: str, value: Any, present: Any
    ) -> Any:
        """Return the value to write for a field. Raises InvalidField."""
        field = ("values", name)
        if name not in form.fields:
            raise InvalidField(field, "There is no such setting here.")
        if form.is_read_only(name):
            raise InvalidField(field, IN_THE_FILE)
        if name in locked:
            raise InvalidField(field, f"The variable {locked[name]} sets it, and the file does not count.")
        if (form.id, name) == ("runtime", "provider_adapter") and value is not None:
            self._require_adapter(field, value)
        items = value if isinstance(value, list) else [value]
        if isinstance(value, dict) and set(value) == {"env"} and isinstance(value["env"], str):
            self._refuse_secret(field, value["env"])
            return Secret(value["env"])
        if any(isinstance(one, dict | list) or (one is None and one is not value) for one in items):
            raise InvalidField(field, IN_THE_FILE)
        for one in items:
            if isinstance(one, str):
                self._refuse_secret(field, one)
                if value != present and form.may_send_secrets(name) and _is_elsewhere(one):
                    raise InvalidField(field, ELSEWHERE)
        return value

    def _require_adapter(self, field: tuple[str, str], value: Any) -> None:
        """Return for the name of an installed adapter, also of one that lacks its settings. Raises InvalidField."""
        sections = {one.item.name for one in self._plugins.config_sections() if one.item.table == "adapters"}
        names = sorted(sections | {one.item.name for one in self._plugins.models()})
        if value not in (AUTO, *names):
            raise InvalidField(field, NO_ADAPTER.format(names=", ".join([AUTO, *names])))

    def _refuse_secret(self, field: tuple[str, str], text: str) -> None:
        if text == HIDDEN or self._keys.redact(text) != text:
            raise InvalidField(field, NOT_A_SECRET)

    def _show(self, form: SettingsForm, now: Config) -> ShownSettings:
        return ShownSettings(
            form=form,
            values=form.values(now),
            locked=form.locked(now),
            secrets=form.secrets(now),
            restart_needed=form.written(now) != form.written(self._started),
        )


def _is_elsewhere(text: str) -> bool:
    """Report whether a text is an address of another machine, or one that programs might read in different ways."""
    if "://" not in text:
        return False
    if not text.isprintable() or "\\" in text or "@" in text:
        return True
    try:
        host = urlsplit(text).hostname or ""
        return host != "localhost" and not ip_address(host).is_loopback
    except ValueError:
        return True


def _is_about(problem: ConfigProblem, changes: Mapping[str, Any]) -> bool:
    return any(problem.key == key or problem.key.startswith(f"{key}.") for key in changes)


def _field(key: str, changes: Mapping[str, Any]) -> str:
    return next(one.rpartition(".")[2] for one in changes if key == one or key.startswith(f"{one}."))
