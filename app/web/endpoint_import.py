"""Several endpoints from one file: shown with what is wrong, then their keys typed, and only then stored."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fastapi import APIRouter
from starlette.responses import Response

from app.accounts import throttle
from app.accounts.forms import earlier_result, store_result
from app.chat import check_api_key
from app.endpoint_files import MOST_ENDPOINTS, EndpointLine, read_endpoints
from app.errors import AppError, InvalidInput
from app.runs.endpoints import add_endpoint
from app.text import clean
from app.web import formats
from app.web.context import Researcher, Web
from app.web.forms import Form, Posted, PostedWithFile
from app.web.starting import REFUSALS, addresses

router = APIRouter(prefix="/endpoints/import")

LONGEST_CONTENT = 500_000
KINDS = ("toml", "csv")
KEY_FIELD = "key_"


@dataclass(frozen=True)
class WantedKey:
    """A key that the file names: it goes to these hosts, so whoever types it can see where."""

    variable: str
    hosts: list[str]
    endpoints: int

    @property
    def field(self) -> str:
        return KEY_FIELD + self.variable


@router.get("")
def page(web: Researcher) -> Response:
    return _show(web, Form.blank(kind=KINDS[0]))


def _show(web: Web, form: Form, details: Sequence[str] = ()) -> Response:
    return web.page(
        "endpoints/import.html",
        form=form,
        details=details,
        kinds=[("toml", "TOML"), ("csv", "CSV")],
        most=MOST_ENDPOINTS,
        longest=LONGEST_CONTENT,
        status=form.status,
    )


@router.post("")
def look(web: Researcher, form: PostedWithFile) -> Response:
    """What the file holds. Nothing of it is stored, and no variable of this machine is looked up."""
    web.limit(throttle.PREVIEW, str(web.person.id))
    if (name := form.value("file_name")) and form.value("file"):
        form.values["content"] = [form.value("file")]
        form.values["kind"] = [Path(name).suffix.lower().lstrip(".")]
    try:
        lines = _read(web, form)
    except REFUSALS as error:
        return _refused(web, form, error)
    return _show_lines(web, form, lines)


def _read(web: Web, form: Form) -> list[EndpointLine]:
    form.text("content", "The file", longest=LONGEST_CONTENT)
    # As it was sent, so that lines count as in the file.
    content = clean(form.value("content").replace("\r\n", "\n"))[0]
    kind = form.choice("kind", "Its form", KINDS)
    form.check()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"endpoints.{kind}"
        path.write_text(content + "\n", encoding="utf-8")
        return read_endpoints(path, addresses(web))


def _refused(web: Web, form: Form, error: AppError) -> Response:
    form = web.refused(form, error)
    # Each line stands below; the first of them need not stand above as well.
    if error.details:
        form.message = error.message.partition(";")[0] + "."
    return _show(web, form, error.details)


def _show_lines(web: Web, form: Form, lines: Sequence[EndpointLine]) -> Response:
    form.key  # noqa: B018  (made now, so that a second sending is known)
    return web.page(
        "endpoints/import_look.html",
        form=form,
        lines=lines,
        keys=_wanted_keys(lines),
        status=form.status,
    )


def _wanted_keys(lines: Sequence[EndpointLine]) -> list[WantedKey]:
    variables = dict.fromkeys(one.key_variable for one in lines if one.key_variable is not None)
    made = []
    for variable in variables:
        targets = [one.target for one in lines if one.key_variable == variable]
        hosts = list(dict.fromkeys(formats.host(one.base_url) for one in targets))
        made.append(WantedKey(variable, hosts, len(targets)))
    return made


@router.post("/store")
def store(web: Researcher, form: Posted) -> Response:
    web.limit(throttle.SUBMIT, str(web.person.id))
    if (path := earlier_result(web.session, web.person, form.key)) is not None:
        return web.redirect(path)
    try:
        lines = _read(web, form)
    except REFUSALS as error:
        return _refused(web, form, error)
    typed = {one.variable: _typed(form, one) for one in _wanted_keys(lines)}
    try:
        form.check()
    except InvalidInput as error:
        return _show_lines(web, web.refused(form, error), lines)
    for one in lines:
        key = typed[one.key_variable] if one.key_variable else None
        target = replace(one.target, api_key=key)
        add_endpoint(web.session, web.person, web.settings.secret, target, addresses(web))
    store_result(web.session, web.person, form.key, "/endpoints")
    web.record("endpoint.import", f"account {web.person.id}", endpoints=len(lines))
    web.commit()
    return web.redirect("/endpoints", notice="endpoints-stored")


def _typed(form: Form, wanted: WantedKey) -> str | None:
    """None where nothing was typed: an endpoint that is there keeps its key, another has none yet."""
    typed = form.secret(wanted.field).strip()
    if not typed:
        return None
    try:
        check_api_key(typed)
    except InvalidInput as error:
        form.fault(wanted.field, error.message)
    return typed
