"""Models under ``/api``: the list of those that can be asked, and the model of a conversation."""

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.answerer import Answerer, ChooseModel, GetAnswerer
from trunkline.contracts.models.listing import ListModels
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.request_reader import bool_param, read_json
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.conversation_schemas import (
    AnsweringModel,
    ConversationModel,
    ModelLists,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute


async def list_models(request: Request) -> Response:
    """``GET /api/models?refresh=``"""
    asked = ListModels(refresh=bool_param(request, "refresh"))
    found = await services_of(request).models.list_models(asked)
    return json_response(ModelLists(adapters=found.adapters))


async def get_model(request: Request) -> Response:
    """``GET /api/conversations/{id}/model``"""
    asked = GetAnswerer(conversation=request.path_params["id"])
    return json_response(_answering(await services_of(request).models.answerer(asked, sender_of(request))))


async def choose_model(request: Request) -> Response:
    """``PUT /api/conversations/{id}/model``"""
    choice = await read_json(request, ConversationModel)
    command = ChooseModel(conversation=request.path_params["id"], model=choice.model)
    return json_response(_answering(await services_of(request).models.choose(command, sender_of(request))))


ROUTES = (
    ScopedRoute("/api/models", list_models, methods=["GET"], scope=TokenScope.OPERATE),
    ScopedRoute("/api/conversations/{id}/model", get_model, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/conversations/{id}/model", choose_model, methods=["PUT"], scope=TokenScope.OPERATE),
)


def _answering(found: Answerer) -> AnsweringModel:
    return AnsweringModel(
        model=found.label, chosen=found.chosen, context_window=found.window, problem=found.problem
    )
