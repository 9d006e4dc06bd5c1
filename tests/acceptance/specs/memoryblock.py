"""The ids of memoryblock (MB): what each is about, and what carries it."""

from collections.abc import Mapping

from ..requirement import Requirement, done

REQUIREMENTS: Mapping[str, Requirement] = {
    "MB-F1": done(
        "Workspace ~/.memoryblock/ws/: config.json (global), auth.json (credentials)",
        "tests/core/runtime/test_home.py",
        "tests/core/gateway/test_blocks.py",
    ),
    "MB-F2": done(
        "Block folder: config.json, monitor.md (identity), memory.md, pulse.json",
        "tests/core/gateway/test_blocks.py",
        "tests/core/gateway/test_conversations.py",
    ),
    # A setting of memoryblock that blocks have here has an effect, which the tests named after the first show. Each
    # other one is refused by the import with the place where it is set.
    "MB-F3": done(
        "Block config (defaults): name; description ''",
        "plugins/importers/tests/test_memoryblock_settings.py",
        "tests/core/gateway/test_blocks.py",
        "plugins/personality/tests/test_identity.py",
        "tests/core/tools/test_scopes.py",
        "tests/integration/test_stopped_blocks.py",
    ),
    "MB-F4": done(
        "Global config: language 'en', blocksDir './blocks', channelAlerts true",
        "tests/core/config/test_load.py",
        "tests/core/config/test_secrets.py",
    ),
    "MB-F5": done(
        "pulse status set: SLEEPING, ACTIVE, BUSY, ERROR",
        "tests/core/gateway/test_blocks.py::test_the_block_status_comes_from_live_monitors",
        "tests/core/gateway/test_blocks.py::test_the_order_of_states",
        "plugins/pulse/tests/test_schedules.py::test_MB_F5_the_status_of_a_block_names_its_next_wake_up",
    ),
    "MB-F6": done(
        "pulse engine: one beat at once, then every intervalSeconds",
        "plugins/pulse/tests/test_schedules.py::test_MB_F6_an_interval_beats_at_once_until_it_is_removed",
        "plugins/pulse/tests/test_schedules.py::test_MB_F6_a_due_time_becomes_a_turn_in_the_background",
        "plugins/importers/tests/test_memoryblock_schedules.py",
    ),
    "MB-F7": done(
        "tools: set_pulse(id, type, instruction, interval?, cron_expression?",
        "plugins/pulse/tests/test_pulse_tools.py::test_MB_F7_a_pulse_is_set_listed_and_removed",
    ),
    "MB-F8": done(
        "message path: channel message → conversation log → slash commands (/status",
        "tests/core/monitor/test_monitor.py",
        "channels/terminal/tests/test_commands.py",
    ),
    "MB-F9": done(
        "Discovery pattern: first call offers only list_tools_available",
        "tests/core/monitor/test_discovery.py",
    ),
    "MB-F10": done("history trimming: old results of read_file/search_files cut to 500 chars"),
    "MB-F11": done("80 % memory rule: when accumulated tokens ≥ thresholdPercent of"),
    "MB-F12": done(
        '"smart memory" on stop: not needed, since every message is stored; a stop leaves memory.md as it is (MB-D11)'
    ),
    "MB-F13": done(
        "system prompt = first-run onboarding (monitor picks a name/emoji",
        "plugins/personality/tests/test_onboarding.py",
        "plugins/personality/tests/test_context_source.py",
        "plugins/personality/tests/test_identity.py",
        "tests/integration/test_default_request.py",
    ),
    "MB-F14": done(
        "Gatekeeper: tools flagged requiresApproval: execute_command (unless safe",
        "tests/core/tools/test_gatekeeper.py",
        "tests/integration/test_approvals.py",
    ),
    "MB-F15": done(
        "ToolSandbox before each execution: (a) shell tools execute_command, run_lint",
        "tests/core/tools/test_scopes.py",
        "tests/core/tools/test_permissions.py",
    ),
    "MB-F16": done("files: read_file(path; 100 000-char cap), write_file(path, content)"),
    "MB-F17": done(
        "shell: execute_command(command, timeout",
        "plugins/shell/tests/test_commands.py",
        "plugins/shell/tests/test_developer_tools.py",
    ),
    "MB-F18": done(
        "identity: update_monitor_identity(name, emoji), update_founder_info(info",
        "plugins/personality/tests/test_identity.py",
        "tests/core/config/test_secrets.py::test_the_listing_shows_references_only",
        "plugins/platform/tests/test_usage.py",
        # auth_read, auth_write and list_auth_providers are the owner's commands, and no tool's: a model is told of no
        # credential, nor whether there is one (C13, MB-D8).
        "tests/core/cli/test_config_and_init.py",
    ),
    "MB-F19": done(
        "plugins: web_search(query, count ≤10, Brave), fetch_webpage(url",
        "tests/integration/test_agents.py",
    ),
    "MB-F20": done(
        "plugin registry entry: id, name, description, package, version, toolNames",
        "tests/core/installing/test_install.py",
        "tests/core/cli/test_plugins.py",
        "tests/core/gateway/test_settings_routes.py",
        "channels/web/tests/test_settings.py",
    ),
    "MB-F21": done(
        "CLI (streaming, light markdown, speaker headers, dim cost line)",
        "channels/terminal/tests/test_terminal.py",
        "channels/terminal/tests/test_channel_contract.py",
        "channels/telegram/tests/test_telegram.py",
        "channels/discord/tests/test_discord.py",
        "channels/slack/tests/test_slack.py",
        "channels/matrix/tests/test_matrix.py",
        "channels/telegram/tests/test_telegram_media.py",
    ),
    "MB-F22": done(
        "MultiChannelManager: several channels at once",
        "tests/core/channels/test_worker.py",
        "tests/core/channels/test_letter_channel.py",
        "tests/core/channels/test_attached_chats.py",
        "tests/core/channels/test_notice_outbox.py",
        "channels/telegram/tests/test_telegram_platform.py",
    ),
    "MB-F23": done(
        "init [-y]; create <name>; start [block] [-d] [-c channel]; stop [block]",
        "tests/core/cli/test_program.py",
        "tests/core/cli/test_up.py",
        "tests/core/cli/test_permissions.py",
        "tests/core/gateway/test_block_changes.py",
        "tests/core/cli/test_service.py",
    ),
    "MB-F24": done(
        "token mblk_ + 32 hex, bearer or ?token=",
        "tests/core/gateway/test_http_auth.py",
        "tests/core/gateway/test_conversations.py",
        "tests/core/gateway/test_block_changes.py",
    ),
    "MB-F25": done("WebSocket /api/ws: client {type:subscribe, block}"),
    # Not there is a live log of an installation: plugins are installed "only on explicit command with approval" (C14),
    # because a plugin is code. `trunkline plugins install` shows each step at the owner's terminal.
    "MB-F26": done(
        "Web pages: paste-token login; setup wizard (welcome, providers, channels",
        "channels/web/tests/test_pages.py",
        "channels/web/tests/test_chat.py",
        "channels/web/tests/test_app.py",
        "channels/web/tests/test_settings.py",
        "channels/web/tests/test_setup.py",
        "tests/core/installing/test_install.py",
    ),
    "MB-F27": done(
        "Costs: costs.json {sessionInput, sessionOutput, totalInput, totalOutput",
        "tests/core/cli/test_costs.py",
        "tests/core/monitor/test_cost_ledger.py",
    ),
    "MB-F28": done(
        "adapters Bedrock (Converse, streaming, 60 s), OpenAI",
        "adapters/openai/tests/test_contract.py",
        "adapters/bedrock/tests/test_contract.py",
        "adapters/gemini/tests/test_contract.py",
        "adapters/anthropic/tests/test_contract.py",
        "tests/core/cli/test_service.py",
        "tests/core/cli/test_update.py",
    ),
    "MB-F29": done(
        "roles: *monitor* (per block identity name+emoji in config and monitor.md)",
        "plugins/personality/tests/test_identity.py",
        "tests/core/tools/test_scopes.py::test_mb_t7_scope_system_excludes_secrets_and_trunkline_itself",
    ),
    "MB-T1": done("init --yes in an empty home → config + empty secrets references exist"),
    "MB-T2": done(
        "create test-block → config, pulse (SLEEPING), memory files; status lists it",
        "tests/core/gateway/test_blocks.py::test_a_block_is_made_and_shown",
        "tests/core/cli/test_up.py::test_blocks_from_the_command_line",
    ),
    "MB-T3": done(
        "create test-block again → refused, non-zero exit, files byte-identical",
        "tests/core/gateway/test_blocks.py::test_bad_names_are_refused",
    ),
    "MB-T4": done(
        "second block is independent (own config, pulse, costs, memory)",
        "tests/core/gateway/test_blocks.py::test_a_block_is_made_and_shown",
        "tests/integration/test_learned_facts.py::test_facts_reach_no_other_block_and_no_other_person",
    ),
    "MB-T5": done(
        'create "Bad Name", -x, 33 chars, ../x → refused by the name rule',
        "tests/core/gateway/test_blocks.py::test_bad_names_are_refused",
    ),
    "MB-T6": done("scope block: read_file ../other/config.json, /etc/passwd, ~/x"),
    "MB-T7": done("protected names in every scope incl"),
    "MB-T8": done("scope block without shell: execute_command → denied with the text naming how"),
    "MB-T9": done("ls; rm -rf x, echo $(rm x), find"),
    "MB-T10": done("deny → tool error result reaches the model, loop goes on"),
    "MB-T11": done("approval requested on telegram is visible and resolvable from web and CLI"),
    "MB-T12": done("discovery: first model request carries only the discovery/always-send set"),
    "MB-T13": done("accumulate to 80 % → summary stored, message list reset, counter 0"),
    "MB-T13b": done("two rebirths in a row: a fact told before the first one is still known after"),
    "MB-T14": done(
        "kill -9 during a tool call → restart resumes the conversation without",
        "tests/integration/test_kills.py::test_killed_while_a_tool_has_its_effect",
    ),
    "MB-T15": done("two channels bound: message from web answered on web"),
    "MB-T16": done(
        "cron */5 * * * * and 0 9 * * 1-5,7 (lists and ranges too) fire once per due",
        "plugins/pulse/tests/test_schedule_kills.py::test_MB_T16_every_due_time_is_one_turn_through_ten_kills",
    ),
    "MB-T17": done(
        "pulse script needs the same permission and approval as execute_command",
        "plugins/pulse/tests/test_pulse_tools.py::test_MB_T17_a_script_needs_the_approval_that_a_person_needs",
    ),
    "MB-T18": done(
        "archive → restore gives byte-identical block; hard delete removes",
        "tests/core/gateway/test_blocks.py::test_archive_and_restore_bring_back_every_byte",
        "tests/core/gateway/test_blocks.py::test_delete",
        "tests/integration/test_stopped_blocks.py::test_running_work_is_stopped_first",
        "tests/integration/test_stopped_blocks.py::test_a_killed_command_is_finished_by_repeating_it",
    ),
    "MB-T19": done(
        "each HTTP route without token → 401 (also plugin routes)",
        "tests/core/gateway/test_http_auth.py::test_requests_without_the_token_are_refused",
        "tests/core/gateway/test_http_auth.py::test_only_loopback_listens",
    ),
    "MB-T20": done("sub-agent: create, query with timeout, list, terminate own child ok"),
    "MB-T21": done(
        "costs after crash equal the sum of provider usage records",
        "tests/chaos/test_chaos.py",
        "tests/core/monitor/test_completion.py::test_a_completion_is_answered_after_its_monitor_is_killed",
    ),
}
