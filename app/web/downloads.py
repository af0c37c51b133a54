"""Files to take away: their names, flavours of csv, hashes, and what is written aside before it is sent."""

import base64
import hashlib
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response, StreamingResponse

from app.errors import NotFound
from app.web.context import Web

TYPES = {
    "jsonl": "application/jsonl; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "zip": "application/zip",
}
FLAVOURS = ("safe", "exact")
HASH = ".sha256"
_LETTERS = re.compile(r"[^A-Za-z0-9._-]+")


def is_exact(web: Web) -> bool:
    """Whether the csv is for a program, byte for byte; else no spreadsheet computes anything in it."""
    given = web.request.query_params.get("flavour") or FLAVOURS[0]
    if given not in FLAVOURS:
        raise NotFound(f"There is no csv of flavour '{given[:40]}'.", details=[*FLAVOURS])
    return given == "exact"


def file_name(parts: Sequence[object], ending: str) -> str:
    """`run-7-sc1-severe_allergy.csv`: of the parts that there are, in letters that any system takes."""
    told = [_LETTERS.sub("-", str(part)).strip("-.") for part in parts if part]
    return "-".join(part for part in told if part)[:150] + "." + ending


def streamed(lines: Iterable[bytes], ending: str, name: str) -> Response:
    return StreamingResponse(lines, media_type=TYPES[ending], headers=_headers(name))


def hash_of(lines: Iterable[bytes], name: str) -> Response:
    """The file's sha256 as `sha256sum --check` reads it, of what is streamed under that name."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line)
    body = f"{digest.hexdigest()}  {name}\n".encode()
    return Response(body, media_type="text/plain; charset=utf-8", headers=_headers(name + HASH))


def written(make: Callable[[Path], Sequence[Path]], ending: str, name: str) -> Response:
    """What can only be sent once it is whole: `make` writes into the folder it is given.

    Several files go as one archive. The sha256 of what is sent stands in Repr-Digest.
    """
    folder = tempfile.TemporaryDirectory(prefix="curate-download-")
    try:
        paths = make(Path(folder.name))
        path = _packed(Path(folder.name), paths) if ending == "zip" else paths[0]
        headers = _headers(name) | {"Repr-Digest": digest_of(_blocks(path))}
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(
        path, media_type=TYPES[ending], headers=headers, background=BackgroundTask(folder.cleanup)
    )


def _packed(folder: Path, paths: Sequence[Path]) -> Path:
    """Workbooks are packed already."""
    whole = folder / "whole.zip"
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
        for path in paths:
            archive.write(path, path.name)
            with suppress(OSError):
                path.unlink()
    return whole


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(2**20):
            yield block


def digest_of(blocks: Iterable[bytes]) -> str:
    """As RFC 9530 writes it."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return f"sha-256=:{base64.b64encode(digest.digest()).decode()}:"


def _headers(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
