"""Every span name and attribute key in one table.

GenAI and messaging names follow the OpenTelemetry semantic conventions (gen-ai spans, messaging spans); names of our
own begin with ``trunkline.``.
"""

from typing import Final

# Spans
INVOKE_AGENT: Final = "invoke_agent"
CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
STORE: Final = "store conversation"
ACCEPT: Final = "accept message"

# GenAI attributes
GEN_AI_OPERATION: Final = "gen_ai.operation.name"
GEN_AI_PROVIDER: Final = "gen_ai.provider.name"
GEN_AI_REQUEST_MODEL: Final = "gen_ai.request.model"
GEN_AI_RESPONSE_MODEL: Final = "gen_ai.response.model"
GEN_AI_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
GEN_AI_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
GEN_AI_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
GEN_AI_AGENT_NAME: Final = "gen_ai.agent.name"
GEN_AI_CONVERSATION_ID: Final = "gen_ai.conversation.id"
GEN_AI_TOOL_NAME: Final = "gen_ai.tool.name"
GEN_AI_TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
GEN_AI_TOOL_TYPE: Final = "gen_ai.tool.type"
GEN_AI_TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
GEN_AI_TOOL_RESULT: Final = "gen_ai.tool.call.result"

# Messaging attributes
MESSAGING_SYSTEM: Final = "messaging.system"
MESSAGING_CLIENT: Final = "messaging.client.id"
MESSAGING_DESTINATION: Final = "messaging.destination.name"
MESSAGING_OPERATION: Final = "messaging.operation.name"

# General
ERROR_TYPE: Final = "error.type"
SERVICE_NAME: Final = "service.name"
SERVICE_INSTANCE: Final = "service.instance.id"

# Our own
TURN: Final = "trunkline.turn.id"
EPOCH: Final = "trunkline.turn.epoch"
STEP: Final = "trunkline.turn.step"
CHANNEL: Final = "trunkline.channel"
FIRST_TOKEN: Final = "trunkline.first_token"
REPEATED: Final = "trunkline.tool.repeated"
TOOL_STATUS: Final = "trunkline.tool.status"
