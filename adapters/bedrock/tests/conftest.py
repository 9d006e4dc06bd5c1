"""The credentials of the scripted AWS, and nothing of the machine's own AWS settings."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import botocore.loaders
import pytest

from trunkline.testing.vendor_apis.bedrock_authorization import ACCESS_KEY, SECRET_KEY

OTHER_VARIABLES = (
    "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
)  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def shared_loader() -> Iterator[None]:
    """Have all sessions share a loader. Each would read the descriptions of services, megabytes of JSON, anew."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("botocore.session.create_loader", cache(botocore.loaders.create_loader))
        yield


@pytest.fixture(autouse=True)
def aws_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in OTHER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
