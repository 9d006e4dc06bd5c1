"""The adapter: Converse, ConverseStream, InvokeModel and the lists of models. Translation is in the other modules."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

import anyio
import msgspec

from trunkline.api.model import (
    Ability,
    Embeddings,
    ModelAdapter,
    ModelError,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Usage,
    model_error,
)
from trunkline_bedrock.bedrock_clients import CONTROL, RUNTIME, BedrockClients
from trunkline_bedrock.bedrock_models import base_model, features_of
from trunkline_bedrock.embeddings import (
    DEFAULT_EMBEDDING_MODEL,
    TOKEN_COUNT_HEADER,
    batches,
    embedding_body,
    read_vectors,
)
from trunkline_bedrock.event_reader import ConverseReader
from trunkline_bedrock.message_content import VENDOR
from trunkline_bedrock.message_request import build_request, count_request, may_stream
from trunkline_bedrock.settings import PARAMETERS, BedrockSettings

ANSWER_TIMEOUT = 30.0
"""Seconds within which the models must have been listed or tokens counted."""

MAX_PAGES = 20
EMBEDDINGS_AT_ONCE = 8
"""The number of requests for vectors that are under way at the same time."""

MODEL_REQUIRED = 'no model is set; set model in [adapters.bedrock] to one that "trunkline models" lists'


class _FoundationModel(msgspec.Struct, rename="camel"):
    model_id: str
    model_arn: str = ""
    input_modalities: list[str] = []
    output_modalities: list[str] = []
    inference_types_supported: list[str] = []

    @property
    def is_usable(self) -> bool:
        """Report whether the model writes text or vectors."""
        return not {"TEXT", "EMBEDDING"}.isdisjoint(self.output_modalities)


class _FoundationModels(msgspec.Struct, rename="camel"):
    model_summaries: list[_FoundationModel] = []


class _ProfileModel(msgspec.Struct, rename="camel"):
    model_arn: str = ""


class _Profile(msgspec.Struct, rename="camel"):
    inference_profile_id: str
    inference_profile_arn: str = ""
    status: str = "ACTIVE"
    type: str = "SYSTEM_DEFINED"
    models: list[_ProfileModel] = []

    @property
    def id(self) -> str:
        """The id for requests. A profile of the account is named by its ARN."""
        return self.inference_profile_id if self.type == "SYSTEM_DEFINED" else self.inference_profile_arn


class _ProfilePage(msgspec.Struct, rename="camel"):
    inference_profile_summaries: list[_Profile] = []
    next_token: str | None = None


class _CountedTokens(msgspec.Struct, rename="camel"):
    input_tokens: int


class BedrockAdapter(ModelAdapter):
    """Amazon Bedrock in one AWS account and region."""

    name = "bedrock"
    vendor = VENDOR
    continues = True
    sees = True
    reads = True
    embeds = True
    embedding_model = DEFAULT_EMBEDDING_MODEL
    parameters = PARAMETERS

    def __init__(self, settings: BedrockSettings) -> None:
        self._settings = settings
        self._clients = BedrockClients(settings)
        self.configured = bool(settings.model)
        self.default_model = settings.model

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request to the model (see ``ModelAdapter.stream``)."""
        model = self._model(request)
        body = build_request(request, model, self._settings)
        reader = ConverseReader(request, model)
        streaming = may_stream(body, model, self._settings)
        async with aclosing(self._clients.events(body, streaming=streaming)) as events:
            async for event in events:
                try:
                    read = list(reader.feed(event))
                except (msgspec.ValidationError, ValueError) as error:
                    raise model_error("bad_response", f"an event cannot be read: {error}") from None
                for item in read:
                    yield item
        for item in reader.finish():
            yield item

    async def models(self) -> tuple[ModelInfo, ...]:
        """Return the foundation models that can be asked by their id, and the inference profiles."""
        with _time_limit():
            listed = await self._list("list_foundation_models", {}, _FoundationModels)
            profiles = await self._profiles()
        usable = {model.model_id: model for model in listed.model_summaries if model.is_usable}
        all_ids = {model.model_id for model in listed.model_summaries}
        found = [
            _info(model.model_id, model, model.model_id)
            for model in usable.values()
            if "ON_DEMAND" in model.inference_types_supported
        ]
        for profile in profiles:
            behind = base_model(profile.models[0].model_arn) if profile.models else ""
            listed_only = behind in all_ids and behind not in usable
            if profile.status == "ACTIVE" and not listed_only:
                found.append(_info(profile.id, usable.get(behind), behind))
        return tuple(found)

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Return the number of input tokens as the vendor counts them; None for a model whose tokens it does not
        count.
        """
        model = self._model(request)
        if not features_of(model, self._settings.base_model).counts:
            return None
        named = base_model(model)
        asked = named if "." in named else base_model(self._settings.base_model)
        arguments = {"modelId": asked, "input": count_request(request, model, self._settings)}
        with _time_limit():
            try:
                answer = await self._clients.call(RUNTIME, "count_tokens", arguments)
            except ModelError as error:
                if "support counting tokens" in error.detail:
                    return None
                raise
        try:
            return msgspec.convert(answer, _CountedTokens).input_tokens
        except msgspec.ValidationError as error:
            raise model_error("bad_response", f"the count cannot be read: {error}") from None

    async def embed(
        self, texts: Sequence[str], *, model: str = "", dimensions: int | None = None
    ) -> Embeddings:
        """Return vectors by a model of Titan or Cohere."""
        named = model or DEFAULT_EMBEDDING_MODEL
        parts = list(batches(texts, named))
        vectors: list[list[tuple[float, ...]]] = [[] for _ in parts]
        tokens: list[int] = [0] * len(parts)
        failures: list[ModelError] = []
        limit = anyio.CapacityLimiter(EMBEDDINGS_AT_ONCE)

        async def embed_part(number: int) -> None:
            async with limit:
                if failures:
                    return
                try:
                    part = parts[number]
                    vectors[number], tokens[number] = await self._embed_part(part, named, dimensions)
                except ModelError as error:
                    failures.append(error)

        async with anyio.create_task_group() as tasks:
            for number in range(len(parts)):
                tasks.start_soon(embed_part, number)
        if failures:
            raise failures[0]
        found = tuple(vector for part in vectors for vector in part)
        return Embeddings(vectors=found, usage=Usage(input_tokens=sum(tokens)), model=named)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._clients.aclose()

    async def _embed_part(
        self, texts: Sequence[str], model: str, dimensions: int | None
    ) -> tuple[list[tuple[float, ...]], int]:
        """Return the vectors of one request, and its tokens."""
        body = msgspec.json.encode(embedding_body(texts, model, dimensions))
        arguments = {"modelId": model, "body": body, "contentType": "application/json"}
        answer = await self._clients.call(RUNTIME, "invoke_model", arguments)
        try:
            found, tokens = read_vectors(answer["body"])
        except (msgspec.MsgspecError, KeyError):
            raise model_error("bad_response", "the vectors cannot be read") from None
        if len(found) != len(texts):
            raise model_error("bad_response", f"{len(texts)} texts were embedded as {len(found)} vectors")
        counted = answer["ResponseMetadata"]["HTTPHeaders"].get(TOKEN_COUNT_HEADER, "")
        return found, int(counted) if counted.isdigit() else tokens

    async def _profiles(self) -> list[_Profile]:
        found: list[_Profile] = []
        query: dict[str, Any] = {"maxResults": 1000}
        for _ in range(MAX_PAGES):
            page = await self._list("list_inference_profiles", query, _ProfilePage)
            found += page.inference_profile_summaries
            if not page.next_token:
                break
            query["nextToken"] = page.next_token
        return found

    async def _list(self, operation: str, query: Mapping[str, Any], form: type[Any]) -> Any:
        answer = await self._clients.call(CONTROL, operation, query)
        try:
            return msgspec.convert(answer, form)
        except msgspec.ValidationError as error:
            raise model_error("bad_response", f"the list of models cannot be read: {error}") from None

    def _model(self, request: ModelRequest) -> str:
        if model := request.model or self._settings.model:
            return model
        raise model_error("refused", MODEL_REQUIRED)


def _info(id: str, listed: _FoundationModel | None, behind: str) -> ModelInfo:
    """Return a model as Trunkline lists it. The vendor lists modalities; the rest is known of Claude and Nova only."""
    features = features_of(behind)
    abilities: set[Ability] = set()
    if listed is not None and "EMBEDDING" in listed.output_modalities:
        abilities.add("embeddings")
    elif listed is not None and features.status:
        abilities |= {"tools", "documents"}
        abilities |= {"reasoning"} if features.thinking != "none" else set()
        abilities |= {"images"} if "IMAGE" in listed.input_modalities else set()
    return ModelInfo(
        id=id,
        context_window=features.context_window,
        max_output=features.max_output,
        abilities=frozenset(abilities) or None,
    )


@contextmanager
def _time_limit() -> Iterator[None]:
    try:
        with anyio.fail_after(ANSWER_TIMEOUT):
            yield
    except TimeoutError:
        raise model_error("timeout", "Bedrock did not answer in time") from None
