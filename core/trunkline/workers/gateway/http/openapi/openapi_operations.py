"""The table of the HTTP operations: method, path, purpose, body, status and answer of each.

``openapi.py`` makes the OpenAPI document of it, and ``docs/generator/http.py`` the page of the reference.
"""

from trunkline.contracts.auth.identity import IdentityRecord
from trunkline.contracts.auth.passkeys import Passkey
from trunkline.contracts.memory.chunk import Chunk
from trunkline.contracts.push.subscriptions import PushSubscription
from trunkline.workers.gateway.http.openai import ability_schemas as abilities
from trunkline.workers.gateway.http.openai import file_routes as files
from trunkline.workers.gateway.http.openai import schemas as openai
from trunkline.workers.gateway.http.openai.responses import response_compaction as compaction
from trunkline.workers.gateway.http.openai.responses import response_schemas as responses
from trunkline.workers.gateway.http.openai.responses import response_tokens as tokens
from trunkline.workers.gateway.http.schemas import agent_schemas as agents
from trunkline.workers.gateway.http.schemas import auth_schemas as auth
from trunkline.workers.gateway.http.schemas import block_schemas as blocks
from trunkline.workers.gateway.http.schemas import conversation_schemas as conversations
from trunkline.workers.gateway.http.schemas import cost_schemas as costs
from trunkline.workers.gateway.http.schemas import doctor_schemas as doctor
from trunkline.workers.gateway.http.schemas import locale_schemas as locales
from trunkline.workers.gateway.http.schemas import memory_schemas as memory
from trunkline.workers.gateway.http.schemas import overview_schemas as overview
from trunkline.workers.gateway.http.schemas import passkey_schemas as passkeys
from trunkline.workers.gateway.http.schemas import platform_schemas as system
from trunkline.workers.gateway.http.schemas import push_schemas as push
from trunkline.workers.gateway.http.schemas import settings_schemas as settings
from trunkline.workers.gateway.http.schemas import setup_schemas as setup
from trunkline.workers.gateway.http.schemas import task_schemas as tasks
from trunkline.workers.gateway.http.schemas import turn_schemas as turns

EVENT_STREAM = "stream"
NO_CONTENT = "nothing"
PLAIN_TEXT = "plain"
FILE_CONTENT = "bytes"
FORM = "form"
AUDIO = "audio"
ARCHIVE = "archive"
CONVERSATION_FILE = "conversation file"

FORMS = ("/api/memory/documents", "/v1/audio/transcriptions", "/v1/audio/translations")
"""The paths whose body is a form with a file."""

OPTIONAL = (conversations.CompactionOptions, turns.CancelRequest, blocks.StopRequest, blocks.ResetRequest)
"""The bodies that can be left out."""

Operation = tuple[str, str, str, type | str | None, int, type | str]

OPERATIONS: tuple[Operation, ...] = (
    ("post", "/conversations/messages", "Begin a conversation.", conversations.NewMessage, 200, EVENT_STREAM),
    ("post", "/conversations/{id}/messages", "Continue a conversation.", conversations.NewMessage, 200, EVENT_STREAM),
    ("get", "/conversations", "A page of conversations.", None, 200, conversations.ConversationList),
    ("get", "/conversations/{id}", "A conversation.", None, 200, conversations.ConversationDetail),
    (
        "patch", "/conversations/{id}", "Name, pin or archive a conversation.",
        conversations.ConversationChanges, 200, conversations.ConversationItem,
    ),
    ("post", "/api/pair", "Exchange a pairing code for a token.", auth.PairRequest, 200, auth.PairReply),
    ("get", "/api/me", "The caller.", None, 200, auth.Me),
    ("post", "/api/sign-out", "End the token of the request.", None, 200, auth.SignedOut),
    ("get", "/api/passkeys", "The caller's passkeys.", None, 200, passkeys.PasskeyStates),
    (
        "post", "/api/passkeys/options", "What a browser needs to make a passkey.",
        None, 200, passkeys.PasskeyOptions,
    ),
    ("post", "/api/passkeys", "Register a passkey.", passkeys.NewPasskeyRequest, 201, Passkey),
    ("delete", "/api/passkeys/{id}", "Remove a passkey and end its sessions.", None, 200, passkeys.RemovedPasskey),
    (
        "post", "/api/passkeys/sign-in/options", "What a browser needs to sign in with a passkey.",
        None, 200, passkeys.PasskeyOptions,
    ),
    ("post", "/api/passkeys/sign-in", "Sign in with a passkey.", passkeys.PasskeySignIn, 200, auth.PairReply),
    ("get", "/api/locales", "The languages of the web app.", None, 200, locales.LocaleList),
    ("get", "/api/locales/{tag}", "The texts of a language.", None, 200, locales.LocaleTexts),
    ("get", "/api/push", "The browsers of the caller that get notices.", None, 200, push.PushState),
    ("post", "/api/push", "Ask for notices of approvals.", push.NewPushSubscription, 201, PushSubscription),
    ("delete", "/api/push/{id}", "End the notices of a browser.", None, 200, push.RemovedPushSubscription),
    ("post", "/api/push/{id}/test", "Send a notice to try it.", None, 200, push.PushTest),
    ("get", "/api/identities", "The people and programs that may enter.", None, 200, auth.IdentityStates),
    ("post", "/api/identities", "Let somebody in.", auth.NewIdentity, 201, IdentityRecord),
    (
        "patch", "/api/identities/{id}", "Suspend, revoke, reactivate or rename an identity.",
        auth.IdentityChanges, 200, IdentityRecord,
    ),
    ("get", "/api/tokens", "The access tokens.", None, 200, auth.TokenStates),
    ("post", "/api/tokens", "Issue an access token.", auth.TokenRequest, 201, auth.IssuedToken),
    ("delete", "/api/tokens/{id}", "Revoke an access token.", None, 200, auth.RevokedToken),
    ("get", "/api/audit", "A page of the audit log.", None, 200, system.AuditPage),
    ("get", "/api/panic", "Whether everything is stopped.", None, 200, system.PanicState),
    ("post", "/api/panic", "Stop everything.", None, 200, system.PanicReport),
    ("get", "/api/conversations/{id}/model", "Who answers in a conversation.", None, 200, conversations.AnsweringModel),
    (
        "put", "/api/conversations/{id}/model", "Choose the model.",
        conversations.ConversationModel, 200, conversations.AnsweringModel,
    ),
    (
        "post", "/api/conversations/{id}/compact", "Summarise the older messages for the model.",
        conversations.CompactionOptions, 202, conversations.Accepted,
    ),
    ("delete", "/api/conversations/{id}/compact", "Withdraw the newest summary.", None, 202, conversations.Accepted),
    (
        "get", "/api/conversations/{id}/context", "What a model was sent in a turn, part by part.",
        None, 200, conversations.ConversationContext,
    ),
    (
        "get", "/api/conversations/{id}/branches", "Where a conversation and its forks part.",
        None, 200, conversations.BranchList,
    ),
    ("get", "/api/conversations/{id}/export", "A conversation as one file.", None, 200, CONVERSATION_FILE),
    ("get", "/api/conversations/{id}/file", "A file of a conversation.", None, 200, FILE_CONTENT),
    ("get", "/api/models", "The models that can be asked.", None, 200, conversations.ModelLists),
    ("get", "/api/turns/{id}", "The state of a turn.", None, 200, turns.TurnDetail),
    ("get", "/api/turns/{id}/events", "A turn's events from a position on.", None, 200, EVENT_STREAM),
    ("post", "/api/turns/{id}/cancel", "End a turn.", turns.CancelRequest, 202, turns.TurnDetail),
    (
        "post", "/api/turns/{id}/steer", "Send a message into a running turn.",
        conversations.NewMessage, 202, conversations.Accepted,
    ),
    (
        "post", "/api/turns/{id}/fork", "Run a turn again from a step, in a new conversation.",
        turns.ForkRequest, 202, conversations.Accepted,
    ),
    (
        "post", "/api/turns/{id}/calls/{call}/decision", "Decide about a parked call.",
        turns.DecisionRequest, 202, turns.TurnDetail,
    ),
    ("post", "/api/ws-ticket", "A ticket for a WebSocket.", None, 201, system.TicketIssued),
    ("get", "/api/approvals", "The calls that wait for a person.", None, 200, turns.ApprovalStates),
    ("get", "/api/approvals/{id}", "One of them, with its arguments.", None, 200, turns.ApprovalState),
    ("get", "/api/approvals/granted", "The grants.", None, 200, turns.GrantStates),
    ("delete", "/api/approvals/granted/{id}", "Revoke a grant.", None, 204, NO_CONTENT),
    ("get", "/api/blocks", "The blocks.", None, 200, blocks.BlockStates),
    ("post", "/api/blocks", "Create a block.", blocks.NewBlock, 201, blocks.BlockState),
    ("get", "/api/block-templates", "What a new block can begin with.", None, 200, blocks.BlockTemplateItems),
    ("get", "/api/blocks/{name}", "A block.", None, 200, blocks.BlockState),
    ("patch", "/api/blocks/{name}", "Change a block's settings.", blocks.BlockChanges, 200, blocks.BlockState),
    ("delete", "/api/blocks/{name}", "Cancel a block's turns and delete it.", None, 204, NO_CONTENT),
    ("post", "/api/blocks/{name}/start", "Switch a block on.", None, 200, blocks.BlockState),
    ("post", "/api/blocks/{name}/stop", "Switch a block off.", blocks.StopRequest, 200, blocks.BlockState),
    ("post", "/api/blocks/{name}/reset", "Reset a block.", blocks.ResetRequest, 200, blocks.BlockState),
    ("post", "/api/blocks/{name}/archive", "Cancel a block's turns and archive it.", None, 204, NO_CONTENT),
    ("post", "/api/blocks/{name}/restore", "Restore a block's newest archive.", None, 200, blocks.BlockState),
    ("get", "/api/blocks/{name}/shares", "With whom a block is shared.", None, 200, blocks.BlockShareList),
    ("get", "/api/blocks/{name}/shares/{identity}", "For what it is shared.", None, 200, blocks.BlockShare),
    ("put", "/api/blocks/{name}/shares/{identity}", "Share a block.", blocks.ShareRequest, 200, blocks.BlockShare),
    ("delete", "/api/blocks/{name}/shares/{identity}", "Stop sharing a block.", None, 204, NO_CONTENT),
    ("get", "/api/memory/files", "The names in a folder of memory.", None, 200, memory.MemoryFolder),
    ("get", "/api/memory/file", "A file of memory.", None, 200, memory.MemoryText),
    ("put", "/api/memory/file", "Write a file of memory.", memory.MemoryWrite, 200, memory.MemoryCommit),
    ("delete", "/api/memory/file", "Delete a file or folder of memory.", None, 200, memory.MemoryCommit),
    ("post", "/api/memory/preview", "What a write would change.", memory.MemoryDraft, 200, memory.MemoryPreview),
    ("post", "/api/memory/move", "Move a file or folder of memory.", memory.MemoryMove, 200, memory.MemoryCommit),
    ("get", "/api/memory/history", "The changes of a path.", None, 200, memory.MemoryRevisions),
    ("get", "/api/memory/diff", "The difference between two versions.", None, 200, memory.MemoryDiff),
    ("get", "/api/memory/blame", "Who wrote each line of a file, and in which turn.", None, 200, memory.MemoryAuthors),
    ("post", "/api/memory/revert", "Undo a change.", memory.MemoryRevert, 200, memory.MemoryRestored),
    ("get", "/api/memory/search", "Search memory.", None, 200, memory.MemorySearchResult),
    ("get", "/api/memory/chunks", "A page of chunks.", None, 200, memory.ChunkList),
    ("get", "/api/memory/chunks/{id}", "A chunk.", None, 200, Chunk),
    ("delete", "/api/memory/chunks/{id}", "Forget a chunk.", None, 200, memory.MemoryCommit),
    ("get", "/api/memory/chunks/{id}/links", "The links of a chunk.", None, 200, memory.ChunkNeighbours),
    ("get", "/api/memory/export", "All of memory with its history, as one archive.", None, 200, ARCHIVE),
    ("post", "/api/memory/import", "Import an archive.", ARCHIVE, 200, memory.MemoryImported),
    (
        "post", "/api/memory/documents", "Read a document and add its text to memory.",
        memory.MemoryDocumentForm, 200, memory.MemoryDocument,
    ),
    ("get", "/api/costs", "What requests to models cost.", None, 200, costs.CostSums),
    ("get", "/api/budgets/history", "Budgets that were used up or reset.", None, 200, costs.BudgetHistory),
    ("get", "/api/turns/{id}/trace", "The timeline of a turn.", None, 200, overview.TurnTimeline),
    ("get", "/api/dead-letters", "Messages that could not be handled.", None, 200, overview.DeadLetterList),
    ("get", "/api/dead-letters/{id}", "One of them, with its text.", None, 200, overview.DeadLetterDetail),
    ("delete", "/api/dead-letters/{id}", "Delete a dead letter.", None, 204, NO_CONTENT),
    ("post", "/api/dead-letters/{id}/retry", "Send a dead letter again.", None, 204, NO_CONTENT),
    ("get", "/api/overview", "Workers, queues, streams and failures.", None, 200, overview.PlatformState),
    ("get", "/api/plugins", "The plugins, and what is wrong with them.", None, 200, system.PluginItems),
    ("get", "/api/settings", "The settings by section, as forms.", None, 200, settings.SettingsSections),
    (
        "patch", "/api/settings/{section}", "Change settings of a section.",
        settings.SettingsChanges, 200, settings.SettingsSection,
    ),
    ("get", "/api/agents", "Agents that work for agents, and their tasks.", None, 200, agents.AgentItems),
    ("post", "/api/agents/{id}/end", "End an agent, or cancel a task.", None, 204, NO_CONTENT),
    ("get", "/api/tasks", "The background tasks.", None, 200, tasks.TaskList),
    ("get", "/api/tasks/{block}/{id}", "One of them, with its output.", None, 200, tasks.TaskDetail),
    ("post", "/api/tasks/{block}/{id}/stop", "End a background task.", None, 200, tasks.TaskDetail),
    ("get", "/api/doctor", "The checks of the installation.", None, 200, doctor.DoctorReport),
    ("get", "/api/setup", "Model vendors and what each needs.", None, 200, setup.SetupChoices),
    ("post", "/api/setup/servers", "Look for model servers on this machine.", None, 200, setup.ModelServers),
    ("post", "/v1/chat/completions", "OpenAI's chat.", openai.ChatRequest, 200, openai.ChatCompletion),
    (
        "post", "/v1/responses", "OpenAI's Responses API.",
        responses.CreateResponse, 200, responses.ResponseResource,
    ),
    (
        "post", "/v1/responses/compact", "Compact an input or a conversation.",
        responses.CompactRequest, 200, compaction.CompactedResponse,
    ),
    (
        "post", "/v1/responses/input_tokens", "Estimate the tokens of an input.",
        tokens.CountInputTokens, 200, tokens.InputTokens,
    ),
    ("get", "/v1/responses/{id}", "A response.", None, 200, responses.ResponseResource),
    ("delete", "/v1/responses/{id}", "Delete a response.", None, 200, responses.ResponseDeleted),
    ("post", "/v1/responses/{id}/cancel", "End a response.", None, 200, responses.ResponseResource),
    ("get", "/v1/responses/{id}/input_items", "The input of a response.", None, 200, responses.InputItemList),
    ("post", "/v1/files", "Upload a file for messages.", FORM, 200, files.FileObject),
    ("get", "/v1/files", "The uploaded files.", None, 200, files.FileList),
    ("get", "/v1/files/{id}", "An uploaded file.", None, 200, files.FileObject),
    ("get", "/v1/files/{id}/content", "The content of a file.", None, 200, FILE_CONTENT),
    ("delete", "/v1/files/{id}", "Delete an uploaded file.", None, 200, files.FileDeleted),
    ("get", "/v1/models", "The blocks as models.", None, 200, openai.ModelList),
    ("get", "/v1/models/{id}", "A block as a model.", None, 200, openai.Model),
    ("post", "/v1/embeddings", "Vectors of texts.", abilities.EmbeddingsRequest, 200, abilities.EmbeddingList),
    (
        "post", "/v1/audio/transcriptions", "The text of a recording.",
        abilities.TranscriptionForm, 200, abilities.TranscriptOut,
    ),
    (
        "post", "/v1/audio/translations", "The text of a recording, in English.",
        abilities.TranscriptionForm, 200, abilities.TranscriptOut,
    ),
    ("post", "/v1/audio/speech", "The audio of a text.", abilities.SpeechIn, 200, AUDIO),
    ("get", "/healthz", "The process is alive.", None, 200, system.Health),
    ("get", "/readyz", "Messages are accepted, answered and stored.", None, 200, system.Readiness),
    ("get", "/metrics", "Counters for Prometheus.", None, 200, PLAIN_TEXT),
)  # fmt: skip
