"""schemathesis, a tool of other people, asks all operations of the served OpenAPI document with generated requests."""

import json
import os
from pathlib import Path
from subprocess import STDOUT
from typing import Any

import anyio
import httpx
import pytest

from tests.clients.environments import Missing, environment
from tests.integration.approval_helpers import asked_by, write
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.workers.gateway.http.openapi.openapi_operations import OPERATIONS

pytestmark = pytest.mark.anyio

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "positive_data_acceptance",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "use_after_free",
    "ensure_resource_availability",
    "ignored_auth",
)

SCHEMA_SAYS_LESS = (
    # The value is the name of something that exists, or follows from another value.
    "GET /api/audit", "GET /api/costs", "GET /api/turns/{id}/events", "GET /v1/files",
    "GET /v1/responses/{id}", "GET /v1/responses/{id}/input_items", "POST /api/tokens",
    "POST /api/turns/{id}/calls/{call}/decision", "POST /api/turns/{id}/fork",
    "POST /v1/responses/compact", "PUT /api/blocks/{name}/shares/{identity}", "PUT /api/conversations/{id}/model",
    # A name or a path has a form, or settings have keys, that the schema does not have.
    "GET /api/memory/blame", "GET /api/memory/diff", "GET /api/memory/file", "GET /api/memory/files",
    "GET /api/memory/history", "PATCH /api/blocks/{name}", "POST /api/blocks",
    "POST /api/identities", "POST /api/memory/move", "POST /api/memory/preview", "POST /api/memory/revert",
    "PUT /api/memory/file",
    # A request changes one thing at least.
    "PATCH /conversations/{id}",
    # A file or an input is not empty and of a known format, and items refer to each other.
    "POST /api/memory/documents", "POST /api/memory/import",
    "POST /v1/audio/transcriptions", "POST /v1/audio/translations", "POST /v1/chat/completions", "POST /v1/embeddings",
    "POST /v1/files", "POST /v1/responses", "POST /v1/responses/input_tokens",
    # They need a browser.
    "POST /api/passkeys", "POST /api/passkeys/options", "POST /api/passkeys/sign-in",
    "POST /api/passkeys/sign-in/options", "POST /api/push",
)  # fmt: skip
"""The operations that refuse some requests that the document allows. All others accept what the document allows."""

SECTION, OFF = "[[operations]]\n", "\nchecks.positive_data_acceptance.enabled = false\n\n"

# The checks are in the file, because checks that are named on the command line also apply where an operation's own
# section switches them off.
CONFIG = f"""
[checks]
enabled = false
{"".join(f"{check}.enabled = true{chr(10)}" for check in CHECKS)}
[[operations]]  # it tells with 503, as the document says, that something is slow here
include-path = "/readyz"
checks.not_a_server_error.enabled = false

{"".join(f"{SECTION}include-name = '{name}'{OFF}" for name in SCHEMA_SAYS_LESS)}
[[operations]]  # no schema says which bytes are an archive
include-name = "POST /api/memory/import"
checks.positive_data_acceptance.enabled = false

[[operations]]  # it would stop everything, so that all following requests were refused
include-name = "POST /api/panic"
enabled = false
"""

EXAMPLES = 10
SEED = 20


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_every_operation_answers_as_the_document_says(tmp_path: Path) -> None:
    """No generated request, valid or not, is a failure of the server, and each answer has a status, a type of content
    and a form of the document. Requests that the document does not allow are refused. Every operation is asked."""
    try:
        program = await anyio.to_thread.run_sync(environment, "schemathesis")
    except Missing as missing:
        pytest.skip(str(missing))
    with ScriptedProvider() as provider:
        config = {**provider.settings, "permissions.approvals": "some"}
        async with platform(tmp_path / "home", config=config) as running:
            existing = await _objects(running)
            output = await _run(program / "schemathesis", running, existing, tmp_path)
    asked = len(OPERATIONS) - 1  # all but the stop
    assert f"Selected: {asked}/{len(OPERATIONS)}" in output and f"Tested: {asked}" in output, output


async def _run(program: Path, running: Platform, existing: dict[str, dict[str, str]], folder: Path) -> str:
    """Run schemathesis, and return what it prints. Asserts that it found no failure."""
    given = {
        "--header": f"Authorization: Bearer {running.token}",
        "--url": running.url,
    }
    given |= {"--phases": "coverage,fuzzing,stateful", "--seed": str(SEED), "--max-examples": str(EXAMPLES)}
    given |= {"--generation-with-security-parameters": "false", "--generation-database": "none"}
    given |= {"--suppress-health-check": "all", "--request-timeout": "60"}
    (folder / "schemathesis.toml").write_text(CONFIG)
    words = [word for pair in given.items() for word in pair]
    command = [str(program), "run", "--no-color", f"{running.url}/openapi.json", *words]
    hooks = {"SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(Path(__file__).parent)}
    environ = {**os.environ, **hooks, "EXISTING": json.dumps(existing)}
    done = await anyio.run_process(command, env=environ, cwd=folder, check=False, stderr=STDOUT)
    output = done.stdout.decode()
    assert done.returncode == 0, output
    return output


async def _objects(running: Platform) -> dict[str, dict[str, str]]:
    """Create an object of each kind, and return the values of parameters by the beginning of their path."""
    message = {"model": "main", "input": "say:hi"}
    ended = await running.send("say:hi")
    await running.answer(ended)
    _, approval = await asked_by(running, write("a.md"))
    async with httpx.AsyncClient(base_url=running.url, headers=_bearer(running), timeout=60) as http:
        response = (await http.post("/v1/responses", json=message)).raise_for_status()
        upload: dict[str, Any] = {"data": {"purpose": "user_data"}, "files": {"file": ("a.txt", b"beans")}}
        file = (await http.post("/v1/files", **upload)).raise_for_status()
        (await http.post("/api/blocks", json={"name": "garden"})).raise_for_status()
    return {
        "/conversations/{id}": {"id": response.headers["x-conversation-id"]},
        "/api/conversations/{id}": {"id": ended.conversation},
        "/api/approvals/{id}": {"id": approval.id},
        "/api/turns/{id}": {"id": approval.turn, "call": approval.call},
        "/api/turns/{id}/cancel": {"id": ended.turn},
        "/api/blocks/{name}": {"name": "garden"},
        "/v1/responses/{id}": {"id": response.json()["id"]},
        "/v1/files/{id}": {"id": file.json()["id"]},
        "/v1/models/{id}": {"id": "garden"},
    }


def _bearer(running: Platform) -> dict[str, str]:
    return {"authorization": f"Bearer {running.token}"}
