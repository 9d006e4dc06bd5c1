"""The ids of Personal AI Architecture (PA, SWAP, ARCH, DEPLOY, FS): the subject of each, and its tests.

The contract also names ids of a static review (S-1..7, P-1..4, PR-1..5, C-1..5, M-1..6, R-1..2, DEP-1..5, X-1..4 and
the D-checks). They are questions for a reviewer; the layers contract and the conformance tests check the parts that a
program can.
"""

from collections.abc import Mapping

from ..requirement import Requirement, done

REQUIREMENTS: Mapping[str, Requirement] = {
    "PA-F1": done("Components: Your Memory, Agent Loop, Auth, Gateway", "tests/architecture/test_layers.py"),
    "PA-F2": done(
        "Only contracts stay fixed (the two APIs)",
        "tests/conformance/test_swap.py",
        "tests/conformance/test_arch_swap.py",
        "plugins/skills/tests/test_skills.py",
    ),
    "PA-F3": done(
        'Verification rules that touch our stack: no hidden infrastructure "message',
        "tests/deploy/test_setup.py",
        "tests/architecture/test_layers.py",
    ),
    "PA-F4": done(
        "zero outward dependencies; readable with text editor/file browser/SQLite",
        "tests/conformance/test_arch_memory.py",
    ),
    "PA-F5": done(
        "exposed only through tools (model via tool loop",
        "plugins/memory/tests/test_memory_tools.py",
        "tests/core/tools/test_memory_path_rules.py",
    ),
    "PA-F6": done(
        "full export in open formats from day one (memory_export named in ARCH-7)",
        "plugins/git_store/tests/test_export.py",
        "tests/core/memory/test_transfer_commands.py",
        "tests/conformance/test_fs_transfer.py",
    ),
    "PA-F7": done(
        "version history initialised at startup, otherwise startup fails",
        "plugins/git_store/tests/test_store_open.py",
        "plugins/git_store/tests/test_history.py",
    ),
    "PA-F8": done("operations read, write, edit, delete, search, list, history"),
    "PA-F9": done(
        "original tool signatures: memory_read{path} → {path, content, modified_at}",
        "plugins/memory/tests/test_memory_tools.py",
    ),
    "PA-F10": done(
        "no secrets in memory; concurrent access must not corrupt",
        "plugins/git_store/tests/test_redaction.py",
        "plugins/git_store/tests/test_files.py::test_simultaneous_writes_never_mix",
    ),
    "PA-F11": done("path safety: realpath of nearest existing parent stays under root"),
    "PA-F12": done(
        "evolution stages (files → +db → +vectors → +multimodal → +cloud) are",
        "plugins/git_store/tests/test_semantic_search.py",
    ),
    "PA-F13": done("accept → model → tools → stream → repeat until the model signals completion"),
    "PA-F14": done("no default iteration cap (deployment MAY set one)"),
    "PA-F15": done("tools and provider are boot configuration, never per request"),
    "PA-F16": done("must not: build prompts, manage skills, hold approval state, enforce scope"),
    "PA-F17": done("parallel tool calls of one turn run concurrently and all results return"),
    "PA-F18": done("operations authenticate(request) → identity", "tests/core/gateway/test_http_auth.py"),
    "PA-F19": done("tools required from day one: auth_whoami, auth_check"),
    "PA-F20": done(
        "identity.json: id, type(owner|collaborator|system_agent|background_agent|exter",
        "tests/core/policy/test_engine.py",
    ),
    "PA-F21": done(
        "permission categories: memory, tool, system actions, delegation",
        "tests/core/policy/test_engine.py",
        "tests/core/cli/test_permission_rules.py",
    ),
    "PA-F22": done(
        "fail closed; login on every access, also local; exportable",
        "tests/core/gateway/test_http_auth.py",
        "tests/core/policy/test_engine.py::test_a_request_without_a_permission_is_refused",
        "plugins/auth/tests/test_auth_tools.py",
    ),
    "PA-F23": done("failure modes: session expiry → silent refresh"),
    "PA-F24": done(
        "approval spectrum ask-everything → ask-some → ask-nothing",
        "tests/integration/test_approvals.py",
        "tests/integration/test_unapproved_effects.py",
    ),
    "PA-F25": done(
        "audit: metadata of every action always",
        "tests/core/runtime/test_audit.py",
        "tests/core/memory/test_audit_disk.py",
    ),
    "PA-F26": done("create (implicit), list, resume, history; route, persist, stream"),
    "PA-F27": done(
        "validate structure; configurable size limit",
        "tests/core/gateway/test_request_validation.py",
        "tests/core/gateway/test_tls.py",
        "tests/core/cli/test_up.py::test_up_opens_to_a_network_for_a_proxy_only",
    ),
    "PA-F28": done(
        "OpenAPI gateway-api.yaml: POST /conversations/messages {content",
        "tests/conformance/test_arch_contract.py",
        "tests/core/gateway/test_titles.py",
    ),
    "PA-F29": done(
        "Gateway API adapter idea: today's external standard is OpenAI Chat",
        "tests/core/gateway/test_openai.py",
        "tests/integration/test_clients_openai.py",
    ),
    "PA-F30": done(
        "triggers message|webhook|schedule all enter through the gateway and all",
        "tests/integration/test_approvals.py",
        "plugins/pulse/tests/test_schedules.py::test_PA_F30_a_webhook_is_no_command_and_a_schedule_may_be_one",
    ),
    "PA-F31": done(
        "POST /engine/chat {messages[{role system|user|assistant|tool, content}]",
        "tests/conformance/test_arch_contract.py",
        "adapters/engine/tests/test_engine.py",
    ),
    "PA-F32": done("error texts are fixed safe messages per code"),
    "PA-F33": done(
        "details: messages minItems 1; trigger default message",
        "tests/conformance/test_arch_contract.py",
        "tests/core/gateway/test_http_auth.py::test_the_gateway_has_no_agent_loop_route",
    ),
    "PA-F34": done(
        "POST /completions {messages(min 1), tools?[{name, description, parameters}]",
        "adapters/openai/tests/test_contract.py",
        "adapters/engine/tests/test_engine.py",
    ),
    "PA-F35": done(
        "sub-agents = a secondary model called as a tool",
        "plugins/rlm/tests/test_retrieval.py",
        "plugins/files/tests/test_image_tool.py",
    ),
    "PA-F36": done(
        "self-describing, found in tool_sources: MCP discovery, manifest (tool.json)",
        "tests/core/plugins/test_sources.py",
        "plugins/mcp/tests/test_server_config.py",
    ),
    "PA-F37": done("always-send set chosen by owner preference"),
    "PA-F38": done(
        "trust: system-shipped in process",
        "tests/plugins_bad/test_isolation.py",
        "tests/plugins_bad/test_quarantine.py",
    ),
    "PA-F39": done(
        "minimal set: filesystem/memory tools, generic skill tool, git tool",
        "plugins/memory/tests/test_memory_tools.py",
        "plugins/skills/tests/test_skill.py",
        "plugins/git/tests/test_git.py",
    ),
    "PA-F40": done("parity: CLI must not have a path to the loop that other clients lack"),
    "PA-F41": done(
        "P1 components do not embed transport/serialisation",
        "tests/architecture/test_layers.py",
        "tests/bus/test_codec.py",
        "tests/conformance/test_arch_memory.py::test_PA_T22_the_transport_stores_nothing_lasting",
    ),
    "PA-F42": done("runtime config exactly 4 fields memory_root, provider_adapter"),
    "PA-F43": done(
        'adapter config per provider {base_url, models[], api_key_ref "$NAME"}',
        "tests/core/runtime/test_supervisor.py",
        "tests/integration/test_default_request.py",
    ),
    "PA-F44": done("boot order: runtime config → adapter config → discover tools → mount memory"),
    "PA-F45": done(
        "deployment contract: owner hardware; complete loop offline; data local",
        "tests/conformance/test_deploy.py",
        "tests/deploy/test_setup.py",
    ),
    "PA-F46": done(
        "reference CLI: start [--port 3000 --config f], boot-check, help",
        "tests/core/cli/test_up.py",
        "tests/core/cli/test_doctor.py",
    ),
    "PA-T1": done("write/read roundtrip of arbitrary text, empty file, >1 MB"),
    "PA-T2": done("paths ../../../etc/passwd, /etc/passwd, subdir/../../etc/passwd"),
    "PA-T3": done("edit with absent old text → error, file unchanged"),
    "PA-T4": done("two simultaneous writes → one of the two contents, never mixed"),
    "PA-T5": done("write failure (read-only dir, disk full) → error, no partial file"),
    "PA-T6": done("history: after 3 writes → 3 records newest first; limit honoured"),
    "PA-T7": done(
        "config with missing field, wrong type, extra field (e.g", "tests/core/config/test_load.py"
    ),
    "PA-T8": done("no/wrong credential → 401 before any model call; 1000 random strings → 401"),
    "PA-T9": done("new conversation: SSE order text-delta*, tool-call, tool-result, text-delta*"),
    "PA-T10": done("resume from second client: provider request contains system + full earlier"),
    "PA-T11": done("unknown conversation → 404 {code,message}"),
    "PA-T12": done("provider 401, 429, 502, malformed SSE, hang → provider_error with fixed text"),
    "PA-T13": done("75 tool iterations in one request complete (no hidden cap)"),
    "PA-T14": done("3 tool calls in one turn each sleeping 1 s finish in < 2 s total"),
    "PA-T15": done("tool result bytes reach the model unchanged (also control characters, 1 MB)"),
    "PA-T16": done("list: limit/offset/search/from/to, total correct, limit 0 or 101 → 400"),
    "PA-T17": done("auth_whoami / auth_check(deny wins"),
    "PA-T18": done("export while a conversation streams → archive complete, stream unharmed"),
    "PA-T19": done("start, 60 s idle, one local conversation under packet capture/unshare -n"),
    "PA-T20": done("token never appears in stdout, logs, memory root or export; file mode 0600"),
    "PA-T21": done('file in memory containing "ignore previous instructions'),
    "PA-T22": done("delete all transport state (JetStream dir) between runs → no conversation"),
    "SWAP-1": done("change provider_adapter + adapter file + env var only"),
    "SWAP-2": done("change model preference in memory; next message uses it, no restart"),
    "SWAP-3": done("a: tool dropped into tool_sources is discovered and used"),
    "ARCH-1": done("all processes stopped: files, SQLite, git history readable"),
    "ARCH-2": done("other Agent Loop binary, rest untouched, same conversation passes"),
    "ARCH-3": done("second client lists and resumes the first client's conversation"),
    "ARCH-4": done("every request/response/event validates; no undocumented fields"),
    "ARCH-5": done("correct error code per failure type, no catch-all"),
    "ARCH-6": done("no path, stack trace, credential in any SSE error"),
    "ARCH-7": done("memory_export archive complete, open formats, readable alone"),
    "ARCH-8": done("three auth tools exist and answer correctly"),
    "ARCH-9": done("history cannot be initialised → start fails"),
    "DEPLOY-1": done("network off: boot, full loop, memory ops, auth, resume all work"),
    "DEPLOY-2": done("all data under local paths; capture shows only configured provider/tool"),
    "DEPLOY-3": done("fresh install reachable on localhost, not from LAN; no discovery broadcast"),
    "DEPLOY-4": done("zero outbound at startup, during local conversation and 60 s idle; no DNS"),
    "DEPLOY-5": done("bind 127.0.0.1 only unless explicitly configured"),
    "FS-1": done("export → other machine → import: documents, conversations, history"),
    "FS-2": done(
        "add tool, skill, client, provider without core edits",
        "tests/architecture/test_lock_in.py",
    ),
    "FS-3": done("= DEPLOY-1+2+3"),
    "FS-4": done("= SWAP-1: another provider by configuration alone"),
    "FS-5": done("= ARCH-3: a second client resumes the conversation"),
    "FS-7": done("= ARCH-2: another agent loop"),
    "FS-6": done("add semantic search; old search unchanged; deleting the index loses nothing"),
    "FS-8": done("library → filesystem → external tools and back, only config/permissions change"),
}
