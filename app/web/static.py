"""The files under static/, held in memory; a file's address carries its hash, so it may be kept for ever."""

import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from app.errors import NotFound

FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class File:
    content: bytes
    media_type: str
    tag: str


class StaticFiles:
    def __init__(self, folder: Path) -> None:
        self.files = {path.name: _read(path) for path in sorted(folder.iterdir()) if path.is_file()}

    def url(self, name: str) -> str:
        """The address to use in pages; KeyError for a file that is not there."""
        return f"/static/{name}?v={self.files[name].tag}"

    async def serve(self, request: Request) -> Response:
        file = self.files.get(request.path_params["name"])
        if file is None:
            raise NotFound("There is no file at this address.")
        fresh = request.query_params.get("v") == file.tag
        headers = {"ETag": f'"{file.tag}"', "Cache-Control": FOR_EVER if fresh else "no-cache"}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=headers)


def _read(path: Path) -> File:
    content = path.read_bytes()
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return File(content, media_type, hashlib.sha256(content).hexdigest()[:16])
