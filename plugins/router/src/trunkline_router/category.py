"""The kinds of work, and the tools that a turn of each kind begins with (MN-F4, MN-F7). Pure."""

from collections.abc import Mapping
from typing import Literal, get_args

Category = Literal["simple_qa", "code", "research", "knowledge", "full"]

MAX_STEPS = 5
"""The largest number of steps of a split task, if the owner names none."""

CATEGORIES: tuple[Category, ...] = get_args(Category)

DESCRIPTIONS: Mapping[Category, str] = {
    "simple_qa": "a greeting, a thank-you, or a question that needs no tools",
    "code": "reading, writing or running code, files, commands or git",
    "research": "searching the web or reading web pages",
    "knowledge": "questions about documents, data files or images",
    "full": "a task of several kinds, or none of the others",
}
"""What the classifier is told about each category."""

ALWAYS = (
    "memory", "memory_read", "memory_search", "recall", "remember", "describe_image", "read_file",
    "list_skills", "use_skill", "ask_human", "get_current_time", "mcp:*",
)  # fmt: skip
"""The tools of every category."""

TOOLS: Mapping[Category, tuple[str, ...] | None] = {
    "simple_qa": (),
    "code": (
        "list_directory", "search_files", "find_files", "file_info", "write_file", "append_to_file", "insert_in_file",
        "replace_in_file", "preview_change", "create_directory", "copy_file", "move_file", "delete_file",
        "execute_command", "run_lint", "run_build", "run_test", "git", "git_status", "git_commit", "todo_*",
        "*_plan", "*_plan_*", "get_plan_status", "*background_task*", "clear_completed_tasks",
    ),
    "research": ("web_search", "fetch_webpage", "web_crawler"),
    "knowledge": (
        "read_document", "list_documents", "search_in_documents", "ingest_document", "summarize_document",
        "clear_documents", "find_files", "retrieve",
    ),
    "full": None,
}  # fmt: skip
"""The tools of a category besides ``ALWAYS``; None for those that a turn has without a router."""


def default_tools(category: Category) -> tuple[str, ...] | None:
    """Return the tools that a turn of this category begins with, if the owner names none."""
    own = TOOLS[category]
    return None if own is None else (*ALWAYS, *own)
