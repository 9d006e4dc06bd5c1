"""The ids of CrevnClaw (CC): what each is about, and what carries it."""

from collections.abc import Mapping

from ..requirement import Requirement, done

REQUIREMENTS: Mapping[str, Requirement] = {
    "CC-F1": done(
        "hub-and-spoke kernel; packages types, kernel, sandbox, memory, dashboard",
        "tests/core/runtime/test_home.py",
        "tests/architecture/test_layers.py",
    ),
    "CC-F2": done(
        'config.json: port 3100, origin_allowlist ["http://localhost:3000"]',
        "tests/core/config/test_load.py",  # files and providers are configured as conflict C37 says
        "plugins/mcp/tests/test_server_config.py",
        "plugins/budget/tests/test_budgets.py",
    ),
    "CC-F3": done(
        "Lane scheduler: System 0, Interactive 1, Background 2",
        "tests/core/monitor/test_slots.py",
        "tests/core/monitor/test_lanes.py",
        "tests/integration/test_lane_kills.py",
    ),
    "CC-F4": done("WebSocket server: Origin allowlist, bearer token at HTTP upgrade"),
    "CC-F5": done("Pairing: crevnclaw pair --generate → JWT, stored in ~/.crevnclaw/config.json"),
    "CC-F6": done(
        "Router: typed event bus between connections, sandbox, memory, LLM",
        "tests/bus/test_service.py",
        "tests/bus/test_codec.py",
    ),
    "CC-F7": done("WS envelope {type, id, timestamp (ISO date-time), payload object}"),
    "CC-F8": done(
        "LLMProvider chat(messages, tools?), streamChat(...), embed(text)",
        "adapters/openai/tests/test_contract.py",
        "adapters/bedrock/tests/test_contract.py",
        "tests/vendors/test_adapter_matrix.py",
    ),
    "CC-F9": done(
        "Circuit breaker: middleware around the model client",
        "plugins/budget/tests/test_limits.py",
        "plugins/budget/tests/test_concurrency.py",
    ),
    "CC-F10": done(
        "MCP host: servers from config, connect at start, auto-discover tools",
        "plugins/mcp/tests/test_host.py",
        "plugins/mcp/tests/test_server_connection.py",
    ),
    "CC-F11": done("YAML DSL, schema validated; states pending → running → waiting_approval"),
    "CC-F12": done("grammar: name (req), description (req), steps (≥1) of {id, name"),
    "CC-F13": done("frozen state {workflow_name, current_step, status, context, frozen_at ISO}"),
    "CC-F14": done(
        "each tool call: create container → mount inputs → run → capture → destroy",
        "plugins/sandbox/tests/test_bubblewrap.py",
        "plugins/sandbox/tests/test_docker.py",
    ),
    "CC-F15": done(
        "tool registry: MCP-compatible schema, tool → image + command",
        "tests/core/tools/test_arguments.py",
        "tests/core/tools/test_worker.py",
        "plugins/sandbox/tests/test_tool_images.py",
    ),
    "CC-F16": done(
        "God Mode: host_network: true in AGENTS.md session config → host network",
        "tests/core/cli/test_permissions.py",
        "tests/integration/test_background_network.py",
    ),
    "CC-F17": done(
        "panic kill: destroy all running containers at once",
        "tests/integration/test_background_panic.py",
    ),
    "CC-F18": done(
        "SQLite + vec: vectors(id, embedding, content, metadata{timestamp, source",
        "plugins/git_store/tests/test_semantic_search.py",
        "plugins/git_store/tests/test_conversations.py",
        "tests/core/monitor/test_cost_ledger.py",
    ),
    "CC-F19": done("fact extraction from turns, embedding by active provider, stored"),
    "CC-F20": done("RAG: embed query → top-k (5) with metadata, <100 ms"),
    "CC-F21": done(
        "directives SOUL.md, AGENTS.md injected into system prompt",
        "plugins/personality/tests/test_context_source.py::test_CC_T16_soul_is_in_the_context_and_may_be_missing",
    ),
    "CC-F22": done(
        "Mission Control: live thought stream (monologue, tool inputs/outputs",
        "channels/web/tests/test_pages.py::test_stop_shows_what_it_ended",
        "channels/web/tests/test_chat.py::test_reasoning_is_folded",
    ),
    "CC-F23": done("pages /, /thought-stream (last 500 entries, colour per type), /memory"),
    "CC-T1": done("queue Background, Interactive, System → run order system, interactive"),
    "CC-T2": done("running Background (5 s) + Interactive arrives → background gets cancelled in"),
    "CC-T3": done("background job ignoring cancellation → hard-killed after the grace time"),
    "CC-T4": done(
        "config cases: valid; defaults filled (3100, allowlist, [], 1/512m/30000)",
        "tests/core/config/test_load.py::test_wrong_types_are_refused",
        "tests/core/config/test_load.py::test_a_file_that_cannot_be_read",
        "plugins/budget/tests/test_budgets.py::test_a_limit_that_cannot_be_is_refused",
    ),
    "CC-T5": done("no token → 401; garbage → 401; other secret → 401; expired → 401"),
    "CC-T6": done("pairing: token file 0600; single use (second exchange fails), expires"),
    "CC-T7": done("envelope missing id / bad timestamp / unknown type → error reply"),
    "CC-T8": done(
        "breaker: spend 9.99 of 10 → allowed",
        "plugins/budget/tests/test_limits.py",
        "plugins/budget/tests/test_concurrency.py",
    ),
    "CC-T9": done("workflow deploy-app (build → review → deploy/cancel): run → waiting_approval"),
    "CC-T10": done("kill the process while waiting; restart"),
    "CC-T11": done("sandbox: echo → stdout, exit 0; >&2 → stderr; exit 3 → 3"),
    "CC-T12": done("panic with 5 running containers → all gone in ≤2 s"),
    "CC-T13": done("host_network requested without TTY confirmation → refused"),
    "CC-T14": done("MCP: server answering in two chunks, 200 tools over pages"),
    "CC-T15": done("ledger .01 + .02 → .03; facts [1,0,0],[0,1,0], query [.9,.1,0] → first"),
    "CC-T16": done("SOUL.md text appears in the provider's system prompt"),
    "CC-T17": done(
        "dashboard (headless browser): thought entries appear <500 ms after the event",
        "channels/web/tests/test_pages.py::test_stop_shows_what_it_ended",
    ),
}
