"""Functions of the routes for embeddings and audio: the client of a block's abilities, and the form of its failures."""

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.models.abilities_client import BlockAbilities
from trunkline.contracts.models.ability_messages import BAD_FORMAT, NOT_ABLE
from trunkline.contracts.models.messages import TIMEOUT
from trunkline.errors import FIXED_SENTENCES, CompletionError, ErrorCode
from trunkline.workers.gateway.errors import InvalidField, error_code
from trunkline.workers.gateway.http.app_state import is_owner, sender_of, services_of
from trunkline.workers.gateway.http.openai.chat_completions import check_model
from trunkline.workers.gateway.http.openai.schemas import error_object
from trunkline.workers.gateway.http.responses import STATUS, json_response

GATEWAY_TIMEOUT = 504

PARAMS = {NOT_ABLE: "model", BAD_FORMAT: "response_format"}
"""The fields that are wrong if a model has not an ability."""

NO_RETRY = {"x-should-retry": "false"}
"""The header that stops OpenAI's clients from retrying: a retry would be paid for again."""


async def block_abilities(request: Request, model: str, text: str = "") -> tuple[BlockAbilities, str]:
    """Return the abilities of the block that ``model`` names, and the model that follows it: ``block:adapter/model``.

    Refused when the block does not exist or takes no messages, when the sender may not choose a model in it, or when an
    admission rule denies a message with this text.
    """
    services, sender = services_of(request), sender_of(request)
    block, _, name = model.partition(":")
    await check_model(request, block or None)
    await services.messages.check_model_choice(name, block or services.blocks.default, sender)
    await services.messages.admit(SendMessage(content=text, block=block or None), sender.identity)
    abilities = BlockAbilities(services.bus, block or services.blocks.default, actor=sender.identity.id)
    return abilities, name


def failed_ability(request: Request, error: CompletionError) -> Response:
    """Return the response to a failure. Why a vendor failed is shown to the owner only."""
    if error.code in PARAMS:
        wrong = InvalidField((PARAMS[error.code],), str(error))
        return json_response(error_object(ErrorCode.INVALID_REQUEST, wrong=wrong), 400)
    if error.code == TIMEOUT:
        body = error_object(ErrorCode.PROVIDER_ERROR, detail=str(error))
        return json_response(body, GATEWAY_TIMEOUT, NO_RETRY)
    code = error_code(error.code)
    detail = _detail(code, str(error)) if is_owner(request) else ""
    headers = NO_RETRY if code in (ErrorCode.PROVIDER_ERROR, ErrorCode.OVER_BUDGET) else {}
    return json_response(error_object(code, detail=detail), STATUS[code], headers)


def _detail(code: ErrorCode, text: str) -> str:
    """Return what the text says besides the fixed sentence of the code."""
    sentence = FIXED_SENTENCES[code]
    return "" if text == sentence else text.removeprefix(sentence).strip()
