"""Forms: read strictly, shown again with what was typed and what is wrong with it, but without secrets."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated

from fastapi import Depends
from starlette.datastructures import FormData, UploadFile
from starlette.requests import ClientDisconnect, Request

from app.errors import AppError, InvalidInput
from app.prices import read_price
from app.text import clean, is_blank

MAX_FIELDS = 300
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")


class FormFault(InvalidInput):
    """Some fields cannot be used; which and why stands in the form."""


@dataclass
class Form:
    """What was sent, field by field. Readers note what is wrong; `check` raises if anything was."""

    values: dict[str, list[str]] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    message: str | None = None
    status: int = 200

    @classmethod
    def blank(cls, **values: object) -> "Form":
        """The form as a page first shows it; a list for several boxes ticked, None for nothing."""
        return cls({name: _strings(value) for name, value in values.items()})

    def value(self, name: str) -> str:
        """What stands in the field, as it was typed."""
        found = self.values.get(name)
        return found[0] if found else ""

    def has(self, name: str, option: object) -> bool:
        return str(option) in self.values.get(name, [])

    @property
    def key(self) -> uuid.UUID:
        """The key of this form (`ui.once(form)`), by which a second sending is known.

        Sent without one, it gets its own, the same whenever it is asked for.
        """
        try:
            return uuid.UUID(self.value("form_key"))
        except ValueError:
            made = uuid.uuid4()
            self.values["form_key"] = [str(made)]
            return made

    def fault(self, name: str, message: str) -> None:
        self.faults.setdefault(name, message)

    def text(self, name: str, label: str, *, longest: int = 200, required: bool = True) -> str:
        """One line or several, cleaned of what a database refuses, without outer white space."""
        text = clean(self.value(name).replace("\r\n", "\n"))[0].strip()
        if len(text) > longest:
            self.fault(name, f"{label}: at most {longest:,} characters, these are {len(text):,}.")
        elif required and is_blank(text):
            self.fault(name, f"{label}: fill this in.")
        return text

    def secret(self, name: str) -> str:
        """As typed, and forgotten by the form, so that no page shows it again."""
        return (self.values.pop(name, None) or [""])[0]

    def choice(self, name: str, label: str, options: Iterable[str]) -> str:
        chosen, allowed = self.value(name), list(options)
        if chosen not in allowed:
            self.fault(name, f"{label}: choose one of {', '.join(allowed)}.")
        return chosen

    def choices(self, name: str, label: str, options: Iterable[str], *, least: int = 0) -> tuple[str, ...]:
        """Of several boxes, each once, in the order of the options."""
        allowed, chosen = list(options), set(self.values.get(name, []))
        if not chosen <= set(allowed):
            self.fault(name, f"{label}: choose among {', '.join(allowed)}.")
        if len(chosen) < least:
            self.fault(name, f"{label}: choose at least {least}.")
        return tuple(option for option in allowed if option in chosen)

    def whole(self, name: str, label: str, *, least: int, most: int, required: bool = False) -> int | None:
        """A whole number within bounds; None when left empty."""
        text = self.value(name).strip()
        if not text and not required:
            return None
        if not (text.isascii() and text.isdecimal() and len(text) < 19 and least <= int(text) <= most):
            self.fault(name, f"{label}: a whole number from {least:,} to {most:,}.")
            return None
        return int(text)

    def price(self, name: str, label: str) -> Decimal | None:
        """US dollars per million tokens; None when left empty."""
        text = self.value(name).strip()
        try:
            return read_price(text) if text else None
        except InvalidInput as error:
            self.fault(name, f"{label}: {error.message}")
            return None

    def dollars(self, name: str, label: str, *, most: int) -> Decimal | None:
        """An amount in US dollars above 0; None when left empty."""
        text = self.value(name).strip()
        if not text:
            return None
        try:
            amount = read_price(text)
        except InvalidInput:
            amount = Decimal(0)
        if not 0 < amount <= most:
            self.fault(name, f"{label}: US dollars above 0, at most {most:,}, such as 12.50.")
            return None
        return amount

    def checked(self, name: str) -> bool:
        return bool(self.values.get(name))

    def check(self) -> None:
        if self.faults:
            raise FormFault("Some of it cannot be used as it is.")

    def refused(self, error: AppError) -> "Form":
        """The form to show again: why it was refused stands above it, what is wrong beside the fields."""
        self.message = error.message if not isinstance(error, FormFault) else None
        self.status = error.status
        return self


def _strings(value: object) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list | tuple | set | frozenset):
        return [str(item) for item in value]
    return [str(value)]


async def read_form(request: Request) -> Form:
    """The body as form fields. Files are for routes of their own; another kind of body is an empty form."""
    return await _read(request, files=0)


async def read_form_with_file(request: Request) -> Form:
    """The same with one text file at most: its text is the value of its field, its name of FIELD_name."""
    return await _read(request, files=1)


async def _read(request: Request, files: int) -> Form:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() not in FORM_TYPES:
        return Form()
    try:
        fields = await request.form(max_fields=MAX_FIELDS, max_files=files)
    except ClientDisconnect:
        raise InvalidInput("The connection ended before the whole form came; nothing was stored.") from None
    try:
        return await _values(fields, files)
    finally:
        await fields.close()


async def _values(fields: FormData, files: int) -> Form:
    form = Form()
    for name, value in fields.multi_items():
        if not isinstance(value, UploadFile):
            # A body may name a character set of its own, and with it bring what no other could encode.
            form.values.setdefault(name, []).append(value.encode("utf-8", "replace").decode())
        elif not files:
            raise InvalidInput("This form takes no files.")
        elif value.filename or value.size:
            form.values[f"{name}_name"] = [clean(value.filename or "")[0]]
            try:
                form.values[name] = [(await value.read()).decode("utf-8-sig")]
            except UnicodeDecodeError:
                form.fault(name, "The file is not UTF-8 text.")
    return form


Posted = Annotated[Form, Depends(read_form)]
PostedWithFile = Annotated[Form, Depends(read_form_with_file)]


def from_query(parameters: Mapping[str, str]) -> Form:
    """A filter's form: what stands in the address."""
    return Form({name: [value] for name, value in parameters.items()})
