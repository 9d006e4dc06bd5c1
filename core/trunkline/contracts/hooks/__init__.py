"""The hooks. A hook is a synchronous function that returns objects, and the objects do the work.

There are four ways to take part: **add** objects (the hook has a plural noun as its name and returns an iterable),
**decide** (the first result that is not None counts; the hook is pure and synchronous), **change** (return a
middleware), and **observe** (subscribe on the bus, from a lifespan). An implementation declares only the arguments
that it needs. ``settings`` is the plugin's own ``PluginSettings``. Each example below is a complete plugin; the tests
load it and check that its objects are registered.

Guarantees: an implementation of a hook that adds is called at most once in a worker for the same arguments. Its objects
come after those of Trunkline's own plugins, in the order of the distributions' names.

Not guaranteed: that an implementation is called. A worker calls only the hooks that it needs.

Errors: an exception, and an object of the wrong form, affects only the implementation, and ``trunkline doctor`` reports
it. Its objects are missing; in place of a guard's objects every call that it guards is refused. A hook that decides is
skipped, but ``trunkline_stop_turn`` ends the turn.
"""

from trunkline.contracts.hooks.channels import trunkline_channels, trunkline_render, trunkline_sentences
from trunkline.contracts.hooks.common import (
    trunkline_bus_middleware,
    trunkline_commands,
    trunkline_config,
    trunkline_health_checks,
    trunkline_lifespan,
    trunkline_messages,
)
from trunkline.contracts.hooks.gateway import (
    trunkline_admission_rules,
    trunkline_authenticators,
    trunkline_http_routes,
    trunkline_locales,
    trunkline_passkey_verifiers,
    trunkline_push_senders,
    trunkline_route,
    trunkline_static_sites,
)
from trunkline.contracts.hooks.markers import PROJECT, hookimpl
from trunkline.contracts.hooks.memory import (
    trunkline_chunk_types,
    trunkline_embedders,
    trunkline_importers,
    trunkline_link_types,
    trunkline_memory_rules,
    trunkline_memory_stores,
    trunkline_purgers,
    trunkline_rank,
)
from trunkline.contracts.hooks.monitor import (
    trunkline_compactors,
    trunkline_context_sources,
    trunkline_model_middleware,
    trunkline_models,
    trunkline_select_model,
    trunkline_stop_turn,
    trunkline_turn_middleware,
    trunkline_turn_routers,
)
from trunkline.contracts.hooks.tools import (
    trunkline_readers,
    trunkline_sandboxes,
    trunkline_tool_middleware,
    trunkline_tool_sources,
    trunkline_tools,
)

__all__ = [
    "PROJECT",
    "hookimpl",
    "trunkline_admission_rules",
    "trunkline_authenticators",
    "trunkline_bus_middleware",
    "trunkline_channels",
    "trunkline_chunk_types",
    "trunkline_commands",
    "trunkline_compactors",
    "trunkline_config",
    "trunkline_context_sources",
    "trunkline_embedders",
    "trunkline_health_checks",
    "trunkline_http_routes",
    "trunkline_importers",
    "trunkline_lifespan",
    "trunkline_link_types",
    "trunkline_locales",
    "trunkline_memory_rules",
    "trunkline_memory_stores",
    "trunkline_messages",
    "trunkline_model_middleware",
    "trunkline_models",
    "trunkline_passkey_verifiers",
    "trunkline_purgers",
    "trunkline_push_senders",
    "trunkline_rank",
    "trunkline_readers",
    "trunkline_render",
    "trunkline_route",
    "trunkline_sandboxes",
    "trunkline_select_model",
    "trunkline_sentences",
    "trunkline_static_sites",
    "trunkline_stop_turn",
    "trunkline_tool_middleware",
    "trunkline_tool_sources",
    "trunkline_tools",
    "trunkline_turn_middleware",
    "trunkline_turn_routers",
]
