"""The plugin: its tools."""

from collections.abc import Iterable

import trunkline


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """The tools that show, and those that change."""
    from trunkline_auth import change_tools, view_tools

    return [
        view_tools.auth_whoami,
        view_tools.auth_check,
        view_tools.auth_export,
        view_tools.auth_list_identities,
        view_tools.auth_audit,
        change_tools.auth_create_identity,
        change_tools.auth_grant,
        change_tools.auth_revoke,
    ]
