"""The ids of mnemoai (MN): what each is about, and what carries it."""

from collections.abc import Mapping

from ..requirement import Requirement, done

REQUIREMENTS: Mapping[str, Requirement] = {
    "MN-F1": done(
        "client (chat UI, agent graph, router, orchestrator",
        "channels/terminal/tests/test_terminal.py",
        "plugins/mcp/tests/test_block_server.py",
    ),
    "MN-F2": done(
        "data: {home}/{profile}/conversations/, profiles/, todos/, rag_session_id.txt",
        "plugins/learning/tests/test_learning_platform.py",
        "tests/core/runtime/test_home.py",
    ),
    "MN-F3": done(
        "model-scoped memory: episodic + playbook per chat model",
        "plugins/learning/tests/test_learning_platform.py::test_another_models_strategies_and_the_profile_are_shown",
    ),
    "MN-F4": done("categories simple_qa, code, research, knowledge, full"),
    "MN-F5": done("fast path only when there is no conversation context: greeting → simple_qa"),
    "MN-F6": done("trivial query (empty, or no signal and ≤6 words) never goes to the"),
    "MN-F7": done(
        "bound sets: always = memory, describe_image, fs_read",
        "plugins/router/tests/test_routed_turns.py::test_MN_F4_a_category_binds_tools_and_a_model",
    ),
    "MN-F8": done(
        "for full: decompose into ordered subtasks with category → workers",
        "plugins/importers/tests/test_mnemoai_prompts.py",  # prompts are files of memory; those of mnemoai are imported
    ),
    "MN-F9": done("decomposition = JSON list [{description, category}], ≤5 by prompt"),
    "MN-F10": done(
        "limits: RECURSION_LIMIT 200, MAX_RETRIES 5 (delay 1.0, backoff 2.0",
        "plugins/failover/tests/test_failover.py",
        "tests/conformance/test_loop.py::test_PA_T13_a_configured_cap_stops_the_loop",
    ),
    "MN-F11": done(
        'robustness: empty-turn salvage, "cut by token limit" note',
        "tests/integration/test_transcripts.py",
        "tests/core/tools/test_arguments.py",
        "plugins/answers/tests/test_answers.py",
        "tests/core/channels/test_letter_channel.py",
    ),
    "MN-F12": done(
        "reasoning helper: thinking switched off for routing/decomposition",
        "plugins/answers/tests/test_answers.py",
    ),
    "MN-F13": done("fs_read(path, mode Line|Directory|Search|…, start_line, end_line, pattern"),
    "MN-F14": done(
        "execute_bash(command, timeout 30, cap 120",
        "plugins/shell/tests/test_commands.py",
        "plugins/git/tests/test_git.py",
        "plugins/git/tests/test_rules.py",
    ),
    "MN-F15": done("todo_write(JSON)/read/clear (one in_progress is only warned)"),
    "MN-F16": done("web_search(query, search_lang, num_results 10; Brave), web_crawler(url"),
    "MN-F17": done(
        "plan tools: enter_plan_mode(task_description, context)",
        "plugins/planning/tests/test_planning.py",
        "plugins/planning/tests/test_plan.py",
    ),
    "MN-F18": done("error decorator: {error: true, error_type, message, next_steps"),
    "MN-F19": done(
        "REQUIRE_WRITE_CONFIRMATION true, REQUIRE_BASH_CONFIRMATION true",
        "tests/core/tools/test_gatekeeper.py",
        "tests/integration/test_approvals.py",
    ),
    "MN-F20": done(
        "plan mode /plan (owner toggle, hard): blocks execute_bash unless read-only",
        "plugins/planning/tests/test_planning.py",
    ),
    "MN-F21": done(
        "session-scoped hybrid search, FAISS or Chroma, cleared with the session",
        "plugins/documents/tests/test_tools.py",
        "plugins/documents/tests/test_add.py",
    ),
    "MN-F22": done('text "Task / Tools used / Outcome" ≤400 tokens; duplicate ≥.95'),
    "MN-F23": done("playbook strategies + metrics per model"),
    "MN-F24": done("automatic user profile. EMA α .15 for verbosity, directness, technical_level"),
    "MN-F25": done(
        "MEMORY.md ≤2200 chars, entries separated by ---", "plugins/personality/tests/test_curated_memory.py"
    ),
    "MN-F26": done("skills skills/<dir>/SKILL.md with frontmatter (description required, ≤1024"),
    "MN-F27": done("auto above MAX_CONVERSATION_TOKENS, keep LLM.KEEP_RECENT_MESSAGES verbatim"),
    "MN-F28": done(
        "/compact, /config, /model. also /params /mcp /skills [name] /clear /memory",
        "channels/terminal/tests/test_commands.py",
        "channels/terminal/tests/test_session.py",
        "channels/terminal/tests/test_actions.py",
        "channels/terminal/tests/test_input.py",
    ),
    "MN-F29": done(
        "providers Bedrock, Mantle (chat_completions|responses|anthropic), Ollama",
        "adapters/bedrock/tests/test_models.py",
        "adapters/ollama/tests/test_contract.py",
        "adapters/openai/tests/test_sagemaker.py",
        "adapters/openai/tests/test_vendors.py",
        "adapters/anthropic/tests/test_contract.py",
        "tests/vendors/test_adapter_matrix.py",
        "tests/core/cli/test_init_at_terminal.py",
    ),
    "MN-F30": done("external MCP servers: mcp.json mcpServers{name:{command,args,env,disabled}}"),
    "MN-F31": done(
        "UI: spinner, streaming with reasoning display, syntax highlight",
        "channels/terminal/tests/test_markdown.py",
        "channels/terminal/tests/test_turns.py",
    ),
    "MN-T1": done("route table: hello/thanks!/good morning → simple_qa"),
    "MN-T2": done('classifier replies "", "code" → code with 2 calls; "", "" → full'),
    "MN-T3": done("subtasks: clean JSON, fenced, after think tags, blocks → parsed"),
    "MN-T4": done("worker 2 of 3 fails → final answer still produced and names the failure"),
    "MN-T5": done("plan mode: allowed ls -la, cat f, grep -rn, git status|log|diff|show, find"),
    "MN-T6": done("git: push -f origin main, push origin main --force blocked"),
    "MN-T7": done("bash: echo → stdout/0; exit 3 → 3; stderr captured"),
    "MN-T8": done('MEMORY.md: add blank → error; duplicate → "already exists"'),
    "MN-T9": done("compaction: 10 messages keep 3 → last 3 identical, summary present"),
    "MN-T10": done(
        "sanitiser: orphan call without text dropped, with text kept as text",
        "tests/integration/test_transcripts.py",
    ),
    "MN-T11": done("args: {'query=\"x\"': ''} → {query:'x'}; {'timeout=30': ''}"),
    "MN-T12": done("mcp config: missing, malformed, disabled, no command, args not list"),
    "MN-T13": done('episodic: "thanks that worked" success; "that\'s wrong, fix it", "no" failure'),
    "MN-T14": done("BM25: rare term outscores common; absent term → zeros"),
    "MN-T15": done("file_edit: missing file, absent string, ambiguous without replace_all"),
    "MN-T16": done("confirmation: non-TTY/background actor → deny or queue"),
}
