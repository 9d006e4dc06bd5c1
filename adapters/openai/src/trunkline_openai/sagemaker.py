"""The adapter for endpoints of Amazon SageMaker: Chat Completions within ``InvokeEndpointWithResponseStream``.

The containers of vLLM, TGI and LMI take and send what an OpenAI-compatible server does, so the translation is that of
``chat_completions``. botocore finds the credentials, signs, and reads the frames; it blocks, so the requests themselves
are sent by the asynchronous HTTP client.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from trunkline.api.model import (
    ModelAdapter,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    model_error,
    retry_after,
    with_cure,
)
from trunkline_openai.chat_completions import ChatCompletions
from trunkline_openai.constraints import is_enforceable
from trunkline_openai.errors import from_exception
from trunkline_openai.sagemaker_settings import ENDPOINT, PARAMETERS, SAGEMAKER, SageMakerSettings
from trunkline_openai.sagemaker_stream import PayloadReader, from_answer
from trunkline_openai.settings import PLACEHOLDER_KEY

if TYPE_CHECKING:
    import httpx2

SECTION = "adapters.sagemaker"
SERVICE, CONTROL = "sagemaker-runtime", "sagemaker"
LIST_TIMEOUT = 30.0
"""Seconds within which the endpoints must have been listed."""

MAX_ERROR = 64 * 1024
"""The largest part of an error's body that is read, in bytes."""

ENDPOINT_REQUIRED = "no endpoint is set; set model in [adapters.sagemaker] to the name of an endpoint"
INSTALL = 'boto3 is not installed; install it with: pip install "trunkline-openai[sagemaker]"'


class SageMakerAdapter(ModelAdapter):
    """The endpoints of one AWS account and region. The name of a model is that of an endpoint."""

    name = "sagemaker"
    vendor = SAGEMAKER.provider
    parameters = PARAMETERS

    def __init__(self, settings: SageMakerSettings) -> None:
        self.configured = bool(settings.model)
        self.default_model = settings.model
        self.structured = settings.structured
        self.sees = settings.sees
        self._settings = settings
        self._aws: _Account | None = None
        self._http: httpx2.AsyncClient | None = None
        self._opening = anyio.Lock()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request to the endpoint (see ``ModelAdapter.stream``)."""
        endpoint = request.model or self._settings.model
        if not ENDPOINT.fullmatch(endpoint):
            raise model_error(
                "refused", ENDPOINT_REQUIRED if not endpoint else f"{endpoint!r} is no endpoint"
            )
        chat, served = self._settings.chat, self._settings.served_model or endpoint
        body = {**ChatCompletions.body(request, served, chat), **self._settings.extra_body}
        reader = ChatCompletions.reader(request, served, chat, PLACEHOLDER_KEY)
        async with aclosing(self._events(endpoint, body)) as events:
            async for event in events:
                try:
                    read = list(reader.feed(event))
                except (msgspec.ValidationError, ValueError) as error:
                    raise model_error("bad_response", f"an event cannot be read: {error}") from None
                for item in read:
                    yield item
        for item in reader.finish():
            yield item

    def enforces_format(self, request: ModelRequest) -> bool:
        """Report whether the container enforces the format (see ``ModelAdapter.enforces_format``)."""
        return self.structured and is_enforceable(request, request.model or self._settings.model)

    async def models(self) -> tuple[ModelInfo, ...]:
        """Return the endpoints that are in service."""
        aws, _ = await self._open()
        try:
            with anyio.fail_after(LIST_TIMEOUT):
                names = await anyio.to_thread.run_sync(aws.endpoints, abandon_on_cancel=True)
        except TimeoutError:
            raise model_error("timeout", "SageMaker did not list its endpoints in time") from None
        return tuple(ModelInfo(id=name) for name in names)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._http is not None:
            http, self._http = self._http, None
            await http.aclose()

    async def _events(self, endpoint: str, body: dict[str, Any]) -> AsyncGenerator[str]:
        """Yield the events of one answer as JSON text. Raise only ModelError; close the connection when closed."""
        aws, http = await self._open()
        content = msgspec.json.encode(body)
        url, headers = await anyio.to_thread.run_sync(aws.signed, endpoint, content)
        response: httpx2.Response | None = None
        try:
            sent = http.build_request("POST", url, content=content, headers=headers)
            response = await http.send(sent, stream=True)
            if response.status_code != 200:
                raise await _refused(response, aws.secret)
            reader = PayloadReader(aws.secret)
            async for data in response.aiter_bytes():
                for event in reader.feed(data):
                    yield event
            for event in reader.finish():
                yield event
        except Exception as error:
            failure = from_exception(error, began=response is not None, key=aws.secret)
            raise with_cure(failure, SECTION, key="profile", address="endpoint_url") from None
        finally:
            if response is not None:
                with anyio.CancelScope(shield=True):
                    await response.aclose()

    async def _open(self) -> "tuple[_Account, httpx2.AsyncClient]":
        async with self._opening:
            if self._aws is None or self._http is None:
                self._aws = await anyio.to_thread.run_sync(_Account, self._settings)
                self._http = await anyio.to_thread.run_sync(_new_client, self._settings)
            return self._aws, self._http


class _Account:
    """The credentials and the address of one AWS account and region. Its methods block."""

    def __init__(self, settings: SageMakerSettings) -> None:
        try:
            import botocore.session
        except ImportError:
            raise model_error("unavailable", INSTALL) from None
        self._settings = settings
        self.secret = PLACEHOLDER_KEY
        try:
            self._session = botocore.session.Session(profile=settings.profile)
            client = self._session.create_client(
                SERVICE, region_name=settings.region, endpoint_url=settings.endpoint_url
            )
            self._region = str(client.meta.region_name)
            self._url = str(client.meta.endpoint_url).rstrip("/")
        except Exception as error:
            raise _setup_error(error) from None

    def signed(self, endpoint: str, content: bytes) -> tuple[str, dict[str, str]]:
        """Return the address and the headers of a request. Raise ModelError without credentials."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        url = f"{self._url}/endpoints/{endpoint}/invocations-response-stream"
        headers = {"Content-Type": "application/json"}
        if component := self._settings.inference_component:
            headers["X-Amzn-SageMaker-Inference-Component"] = component
        try:
            found = self._session.get_credentials()
            if found is None:
                raise model_error(
                    "authentication", "no AWS credentials were found; set AWS_PROFILE, or profile"
                )
            credentials = found.get_frozen_credentials()
            self.secret = credentials.secret_key
            request = AWSRequest(method="POST", url=url, data=content, headers=headers)
            SigV4Auth(credentials, CONTROL, self._region).add_auth(request)
        except Exception as error:
            raise _setup_error(error) from None
        return url, dict(request.headers.items())

    def endpoints(self) -> list[str]:
        """Return the names of the endpoints in service. Raise ModelError."""
        try:
            client = self._session.create_client(
                CONTROL, region_name=self._region, endpoint_url=self._settings.endpoint_url
            )
            found = client.list_endpoints(StatusEquals="InService", MaxResults=100)
        except Exception as error:
            raise _setup_error(error) from None
        return [str(one["EndpointName"]) for one in found["Endpoints"]]


def _setup_error(error: Exception) -> Exception:
    """Return the error for an exception of botocore. Its messages name settings and profiles, and no key."""
    from botocore import exceptions

    match error:
        case exceptions.NoRegionError():
            return model_error("refused", "no AWS region is set; set region in [adapters.sagemaker]")
        case exceptions.ProfileNotFound():
            return model_error("refused", f"{error}; correct profile in [adapters.sagemaker]")
        case exceptions.ClientError(response=response):
            status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))
            told = response.get("Error", {})
            return from_answer(
                status, msgspec.json.encode({"message": told.get("Message", "")}), PLACEHOLDER_KEY
            )
        case exceptions.BotoCoreError():
            fault = "unavailable" if isinstance(error, exceptions.HTTPClientError) else "authentication"
            return model_error(fault, f"{type(error).__name__}: {error}")  # type: ignore[arg-type]
    return error


async def _refused(response: "httpx2.Response", secret: str) -> Exception:
    body = b""
    async for data in response.aiter_bytes():
        body += data
        if len(body) > MAX_ERROR:
            break
    error = from_answer(response.status_code, body, secret)
    error.retry_after = retry_after(response.headers)
    return error


def _new_client(settings: SageMakerSettings) -> "httpx2.AsyncClient":
    """Return a client that follows no redirect: a signed request goes to the service only."""
    import httpx2

    timeout = httpx2.Timeout(None, connect=settings.connect_timeout)
    return httpx2.AsyncClient(timeout=timeout, follow_redirects=False)
