"""The schemas of settings by section."""

from typing import Any

from trunkline.workers.gateway.http.schemas.schema_base import In, Out


class SettingsSection(Out, frozen=True, kw_only=True):
    """A section of ``trunkline.toml``, such as ``adapters.openai``. ``owner`` is its plugin, "" for the platform.

    ``schema`` is a JSON Schema of the fields that have a form; one with ``readOnly`` is changed in the file alone.
    ``values`` are the values that the next start uses. A secret is its reference, ``{"env": NAME}``, and ``secrets``
    says of each such variable whether it is set here. ``locked`` are fields that a variable sets, with its name.
    ``restart_needed`` says that the platform runs with other values.
    """

    id: str
    owner: str = ""
    schema: dict[str, Any]
    values: dict[str, Any]
    secrets: dict[str, bool] = {}
    locked: dict[str, str] = {}
    restart_needed: bool = False


class SettingsSections(Out, frozen=True, kw_only=True):
    """The sections: first those of the platform, then those of plugins."""

    sections: tuple[SettingsSection, ...]


class SettingsChanges(In, frozen=True, kw_only=True):
    """The fields to change. None removes a field, so that its default holds. A secret is given as ``{"env": NAME}``."""

    values: dict[str, Any]
