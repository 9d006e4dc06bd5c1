"""The identity headers: for whom the other loop works, and what its calls may do at most."""

from collections.abc import Mapping

from trunkline.api.model import ActorPermissions, ModelRequest
from trunkline_engine.protocol import model_error
from trunkline_engine.settings import EngineSettings


def identity_headers(settings: EngineSettings, request: ModelRequest) -> Mapping[str, str]:
    """Return the headers of a request: its actor, with the permissions that both the settings and the turn have. A
    request outside of a turn has those of the settings if it is for the actor of the settings, and none otherwise.

    Raises:
        ModelError: the id of the actor cannot be in a header.
    """
    actor = request.actor or settings.actor
    if not (actor.isascii() and actor.isprintable() and actor == actor.strip()):
        raise model_error("refused", f"the id {actor!r} cannot be sent in the header X-Actor-ID")
    return {"X-Actor-ID": actor, "X-Actor-Permissions": ",".join(_permissions(settings, request, actor))}


def _permissions(settings: EngineSettings, request: ModelRequest, actor: str) -> tuple[str, ...]:
    own = ActorPermissions.parse(settings.permissions)
    if request.permissions is not None:
        return own.intersect(request.permissions)
    return own.scopes if actor == settings.actor else ()
