"""Which parameter an endpoint has just refused as unsupported, and what to send from now on."""

import re
from collections.abc import Mapping
from itertools import pairwise

from app.chat.api_errors import ApiError
from app.chat.exchange import Learned
from app.chat.providers import Provider, Request
from app.chat.providers.base import parameters

MAX_LEARNINGS = 6
STATUSES = frozenset({400, 422})
# Some servers report a failed chat template as 500.
ROLE_STATUSES = STATUSES | {500}

_UNSUPPORTED = re.compile(
    r"unsupported|not (?:\w+ )?support|n't support|no longer support|unrecogni[sz]ed|unknown|unexpected"
    r"|extra inputs|not permitted|not enabled|not available|deprecated|cannot both|mutually exclusive",
    re.IGNORECASE,
)
_CODES = frozenset(
    {"unsupported_parameter", "unsupported_value", "unknown_parameter", "extra_forbidden", "unsupported"}
)
# Our own fault or the protocol's: to leave the parameter out would hide it.
_OURS = re.compile(r"invalid schema", re.IGNORECASE)
_EITHER = re.compile(r"cannot both|mutually exclusive|only one|not both", re.IGNORECASE)
_ALTERNATE = re.compile(r"(?:must|should) alternate|roles? must be alternat|consecutive", re.IGNORECASE)
_SYSTEM = re.compile(
    r"\b(?:system|developer)\b[^.]{0,20}\b(?:role|message|prompt|instruction)|'system'", re.I
)
# Of two parameters that exclude each other the first of these goes.
_GIVEN_UP_FIRST = ("top_p", "presence_penalty", "stop", "response_format", "temperature", "max_tokens")


def learn(provider: Provider, request: Request, status: int, error: ApiError) -> dict[str, str | None]:
    """What to send differently after this refusal, or {} where nothing can be learned.

    Only parameters that were really sent count, so that every learning changes the next request.
    """
    if status in ROLE_STATUSES:
        roles = _roles(request, error)
        if roles:
            return roles
    if status not in STATUSES or not _says_unsupported(error):
        return {}
    sent = _sent(provider, request)
    named = _by_param(provider, sent, error.param) or _by_message(provider, sent, error.message)
    return {named: _replacement(provider, request.learned, named)} if named else {}


def _says_unsupported(error: ApiError) -> bool:
    if _OURS.search(error.message):
        return False
    return bool(error.codes & _CODES) or _UNSUPPORTED.search(error.message) is not None


def _sent(provider: Provider, request: Request) -> list[str]:
    sent = [name for name in parameters(request) if name in provider.aliases and name not in provider.fixed]
    # The completion adapter adds stop sequences of its own.
    if "stop" not in sent and "stop" in provider.body(request):
        sent.append("stop")
    return sent


def _by_param(provider: Provider, sent: list[str], param: str | None) -> str | None:
    if not param:
        return None
    words = set(re.split(r"[^\w]+", param))
    return next((name for name in sent if words & set(provider.aliases[name])), None)


def _by_message(provider: Provider, sent: list[str], message: str) -> str | None:
    places: dict[str, int] = {}
    for name in sent:
        words = "|".join(map(re.escape, provider.aliases[name]))
        found = re.search(rf"(?<![\w.])(?:{words})(?!\w)", message)
        if found:
            places[name] = found.start()
    if not places:
        return None
    if len(places) > 1 and _EITHER.search(message):
        return next(name for name in _GIVEN_UP_FIRST if name in places)
    return min(places, key=places.__getitem__)


def _replacement(provider: Provider, learned: Learned, name: str) -> str | None:
    renames: Mapping[str, str] = provider.renames or {}
    return None if name in learned else renames.get(name)


def _roles(request: Request, error: ApiError) -> dict[str, str | None]:
    roles = [message.role for message in request.messages]
    if (
        _ALTERNATE.search(error.message)
        and "roles" not in request.learned
        and any(one == other for one, other in pairwise(roles))
    ):
        return {"roles": "merged"}
    names_system = _SYSTEM.search(error.message) and _says_unsupported(error)
    if names_system and "system" in roles and "system_role" not in request.learned:
        return {"system_role": "user"}
    return {}
