"""The ids of RLM-MEM (RLM): what each is about, and what carries it."""

from collections.abc import Mapping

from ..requirement import Requirement, done

REQUIREMENTS: Mapping[str, Requirement] = {
    "RLM-F1": done(
        "one JSON file per chunk, open format, date-organised",
        "plugins/git_store/tests/chunks/test_chunks.py",
    ),
    "RLM-F2": done(
        "Chunk: id chunk-YYYY-MM-DD-<8 hex>, content, tokens",
        "plugins/git_store/tests/chunks/test_chunks.py",
        "plugins/git_store/tests/chunks/test_chunk_model.py",
    ),
    "RLM-F3": done(
        "directory required: memory/YYYY-MM-DD/chunk-*.json + daily index.json",
        "plugins/git_store/tests/chunks/test_chunks.py",
    ),
    "RLM-F4": done("list filters: conversation_id, tags (ALL must match), created_after/before"),
    "RLM-F5": done("extension: custom chunk types with required/optional fields"),
    "RLM-F6": done("bounds 100–800 tokens: paragraph split → merge small (<100) → split large at"),
    "RLM-F7": done(
        "type detection, first hit wins in order decision > pattern > preference >",
        "plugins/git_store/tests/chunks/test_chunk_model.py",
        "plugins/learning/tests/test_facts.py",
    ),
    "RLM-F8": done(
        "AutoLinker: context_of (same conversation, both directions, strength 1.0)",
        "plugins/git_store/tests/chunks/test_chunks.py::test_rlm_t4_chunks_of_a_conversation_are_each_others_context",
    ),
    "RLM-F9": done("remember(content, conversation_id, tags=[], confidence .7 in [0,1]"),
    "RLM-F10": done("recall(query, conversation_id?, max_results 5, min_confidence .5) → {answer"),
    "RLM-F11": done("reason(query, context_chunks?, analysis_type"),
    "RLM-F12": done("forget: no such operation in either"),
    "RLM-F13": done("retrieval flow: prompt → model writes search code → sandbox executes"),
    "RLM-F14": done("REPLSession(chunk_store, llm_client, max_iterations 10, timeout 60 s"),
    "RLM-F15": done("FINAL protocol: may be called once; ends the session; any object"),
    "RLM-F16": done("execute semantics: value of last expression", "plugins/rlm/tests/test_session.py"),
    "RLM-F17": done(
        "llm_query recursion: depth counter, limit → RecursionError",
        "plugins/rlm/tests/test_retrieval.py::test_rlm_t12_the_depth_has_an_end",
    ),
    "RLM-F18": done(
        "sandbox: AST validation (imports of os, sys, subprocess, socket, urllib",
        "plugins/rlm/tests/test_attacks.py",
    ),
    "RLM-F19": done(
        "LLM client: 3 retries, 1·2^n s back-off on transient words",
        "plugins/rlm/tests/test_retrieval.py",
        "plugins/failover/tests/test_failover.py",
        "plugins/budget/tests/test_limits.py",
        "tests/core/cli/test_costs.py",
    ),
    "RLM-F20": done("layers project_agent, project_global, user_agent, user_global"),
    "RLM-F21": done("policy config.yaml: enabled, read_layers [project_agent, project_global]"),
    "RLM-F22": done(
        "CLI put/get/search/prune; migration tool (dry run, backup, idempotent)",
        "tests/core/memory/chunks/test_commands.py",
        "plugins/git_store/tests/test_import.py",
        "plugins/learning/tests/test_facts.py",
    ),
    "RLM-F23": done("personality files BASE, RESEARCH_ANALYST, CREATIVE_DIRECTOR"),
    "RLM-F24": done(
        "sliders 0–100: Creativity, Technicality, Humor, Directness, Morality, (Soul",
        "plugins/personality/tests/test_hud.py",
    ),
    "RLM-F25": done(
        'chat commands: "Set X to N%" / "X at N%", "Max X", "Min X", "Reset sliders"',
        "plugins/personality/tests/test_hud.py",
        "plugins/personality/tests/test_context_source.py",
    ),
    "RLM-F26": done(
        "LIVEHUD block in front of every response: Session Active/New, Mode",
        "plugins/personality/tests/test_hud.py",
    ),
    "RLM-F27": done(
        "etiquette: claim tags [Fact]//[Opinion]", "plugins/personality/tests/test_context_source.py"
    ),
    "RLM-T1": done('remember "User prefers dark mode" → one chunk type preference'),
    "RLM-T2": done("2000-token text → all chunks ≤800 tokens, ≥100 except the last"),
    "RLM-T3": done('remember None → type error; "" or spaces → success false, nothing written'),
    "RLM-T4": done("two chunks same conversation → mutual context_of"),
    "RLM-T5": done('recall "apples": chunk tagged apples outranks chunk with the word in text'),
    "RLM-T6": done('recall "pytesst prefernce" finds the pytest preference chunk'),
    "RLM-T7": done('reason over "likes tabs" / "does not like tabs" → a negation conflict'),
    "RLM-T8": done('REPL must block: __import__("os"), import os, from os import system'),
    "RLM-T9": done('REPL allows: 2+2*10 → 22, len("hello") → 5, "a,b,c".split(",")'),
    "RLM-T10": done("while True: pass with timeout 1 s → timeout error in <3 s and the worker's"),
    "RLM-T11": done("model never calls FINAL, max_iterations 3 → None and exactly 3 model calls"),
    "RLM-T12": done("llm_query at max depth → recursion error; depth back to 0 afterwards"),
    "RLM-T13": done("50 concurrent REPL sessions do not see each other's output or variables"),
    "RLM-T14": done("12 agents × 75 parallel puts → 900 valid records, none torn"),
    "RLM-T15": done("redaction: api_key=ABC123 token: qwerty password=swordfish → three"),
    "RLM-T16": done("soft delete → gone from list/recall/tag index, present in archive"),
    "RLM-T17": done("delete all indexes → rebuilt, same recall results"),
    "RLM-T18": done('"Set humor to 80%" → HUD shows 80 with 16 filled cells of 20 and default 45'),
}
