"""The forms of settings: for each section its JSON Schema and its present values. No I/O.

A field with ``readOnly`` in its schema is changed in ``trunkline.toml`` alone, such as one that decides which programs
run. So is every path, and every address of another machine to which a secret may be sent. Of the platform's own
settings, those of ``GENERAL`` have a form, and the others are changed in the file.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any

import msgspec

from trunkline.config import Config, InvalidConfig, Secret, Settings
from trunkline.config.secret_names import is_telling, without_login
from trunkline.contracts.plugins.extensions import ConfigSection
from trunkline.plugins.ownership import OwnedItem

GENERAL: Mapping[str, tuple[str, ...]] = {
    "runtime": ("provider_adapter",),
    "gateway": ("default_block", "max_content", "max_queued", "max_attachments", "max_attachment_mb"),
    "approvals": ("deadline", "background_deadline", "remind_after_share"),
    "monitor": (
        *("context_window", "context_share", "model_idle_timeout", "max_tool_calls", "parallel_tool_calls"),
        *("discovery_threshold", "concurrency"),
    ),
    "documents": ("read_timeout", "read_memory_mb", "conversation_days"),
    "telemetry": ("log_level", "traces"),
}
"""The platform's settings that have a form, by section. None of them opens a port, runs code, permits a call or names
a folder."""

HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True)
class SettingsForm:
    """The form of one section. ``id`` is its name in the file, ``owner`` the plugin, "" for the platform. ``schema`` is
    a JSON Schema of the fields.
    """

    id: str
    owner: str
    kind: type[msgspec.Struct]
    schema: dict[str, Any]
    section: ConfigSection | None = None

    @property
    def fields(self) -> Mapping[str, dict[str, Any]]:
        """The schema of each field, by its name in the file."""
        found: dict[str, dict[str, Any]] = self.schema.get("properties", {})
        return found

    def is_read_only(self, name: str) -> bool:
        """Report whether a field, or what it lists, is changed in the file alone."""
        field = self.fields[name]
        kinds = [field, field.get("items", {}), *field.get("anyOf", ())]
        return any(isinstance(kind, dict) and kind.get("readOnly") for kind in kinds)

    def may_send_secrets(self, name: str) -> bool:
        """Report whether a secret may be sent to an address in this field: every one of an adapter, and of a section
        with a reference to a secret, unless the schema of the field has ``keyless``.
        """
        if self.section is None or self.fields[name].get("keyless"):
            return False
        return self.section.table == "adapters" or "Secret" in self.schema.get("$defs", {})

    def key(self, config: Config) -> tuple[str, ...]:
        """Return the key of the section as the file spells it."""
        return config.section_key(self.section.table, self.section.name) if self.section else (self.id,)

    def values(self, config: Config) -> dict[str, Any]:
        """Return the values that hold with this configuration. A secret is its reference, ``{"env": NAME}``. What may
        be a secret is hidden. The values are those of the file if they are not valid.
        """
        try:
            found = self._valid(config)
        except InvalidConfig:
            found = config.sources.get(self.key(config))
        values = msgspec.to_builtins(found, enc_hook=str)
        return {name: _shown(name, value) for name, value in values.items() if name in self.fields}

    def written(self, config: Config) -> dict[str, Any]:
        """Return the values that the file and the environment set."""
        table = config.sources.get(self.key(config)) or {}
        return {name: value for name, value in table.items() if name in self.fields}

    def locked(self, config: Config) -> dict[str, str]:
        """Return the fields that the environment sets, each with its variable: the file does not change them."""
        origins = {name: config.sources.origin((*self.key(config), name)) for name in self.written(config)}
        return {name: origin.where for name, origin in origins.items() if origin.kind == "env"}

    def secrets(self, config: Config) -> dict[str, bool]:
        """Return the variables that the values refer to, each with whether it is set."""
        return {name: Secret(name).is_set(config.environ) for name in _references(self.values(config))}

    def _valid(self, config: Config) -> msgspec.Struct:
        if self.section is None:
            part: msgspec.Struct = getattr(config.settings, self.id)
            return part
        return config.written_section(self.section.table, self.section.name, self.kind)


def settings_forms(sections: Iterable[OwnedItem[ConfigSection]]) -> tuple[SettingsForm, ...]:
    """Return the forms of the platform's own sections, then those of plugins by name."""
    kinds = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    own = [SettingsForm(id, "", kinds[id], _schema(kinds[id], GENERAL[id])) for id in GENERAL]
    theirs = [
        SettingsForm(
            f"{one.item.table}.{one.item.name}", one.owner, one.item.type, _schema(one.item.type), one.item
        )
        for one in sections
    ]
    return (*own, *sorted(theirs, key=lambda form: form.id))


def _schema(kind: type[msgspec.Struct], only: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Return the JSON Schema of a section, with its docstring; without fields if it has a type that JSON lacks."""
    about = cleandoc(kind.__doc__ or "")
    fields = [one for one in msgspec.structs.fields(kind) if only is None or one.encode_name in only]
    shown = msgspec.defstruct(kind.__name__, [_declared(one) for one in fields], kw_only=True)
    try:
        whole = msgspec.json.schema(shown, schema_hook=_path_schema)
    except TypeError:
        return {"type": "object", "description": about, "properties": {}}
    others: dict[str, Any] = whole.get("$defs", {})
    root: dict[str, Any] = others.pop(whole["$ref"].rpartition("/")[2])
    return {**root, "description": about, **({"$defs": others} if others else {})}


def _declared(field: msgspec.structs.FieldInfo) -> Any:
    """Return the declaration of a field by its name in the file. JSON has paths as texts."""
    if field.required:
        return field.encode_name, field.type
    if field.default_factory is not msgspec.NODEFAULT:
        return field.encode_name, field.type, msgspec.field(default_factory=field.default_factory)
    default = str(field.default) if isinstance(field.default, Path) else field.default
    return field.encode_name, field.type, default


def _path_schema(kind: type) -> dict[str, Any]:
    if kind is Path:
        return {"type": "string", "format": "path", "readOnly": True}
    raise NotImplementedError  # so msgspec expects it of a hook; it becomes a TypeError, which _schema handles


def _shown(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {inner: _shown(inner, one) for inner, one in value.items()}
    if isinstance(value, list):
        return [_shown(name, one) for one in value]
    if not isinstance(value, str):
        return value
    return HIDDEN if value and is_telling(name) and not value.startswith("$") else without_login(value)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and set(value) == {"env"} and isinstance(value["env"], str):
        yield value["env"]
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _references(inner)
