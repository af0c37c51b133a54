"""Can this zip file be parsed as a workbook without harm? All is looked through before any is parsed."""

import zipfile
import zlib
from collections.abc import Iterator
from xml.parsers import expat

from app.errors import InvalidInput
from app.tables.shape import Limits

_CHUNK = 256 * 1024
_SMALL = 2**20  # below this a high ratio is repetition, not a bomb
_NEEDED = ("[Content_Types].xml", "xl/workbook.xml")
_SAVE_AGAIN = "open it in a spreadsheet program and save it again as .xlsx"


def check_workbook(archive: zipfile.ZipFile, name: str, limits: Limits) -> None:
    """Raises InvalidInput for bombs, entities, lying sizes, encryption, and what is no workbook at all."""
    entries = archive.infolist()
    _check_directory(entries, name, limits)
    for entry in entries:
        if entry.filename.lower().endswith((".xml", ".rels")):
            _check_part(archive, entry, name, limits)


def _check_directory(entries: list[zipfile.ZipInfo], name: str, limits: Limits) -> None:
    names = [entry.filename for entry in entries]
    if len(names) > limits.zip_entries or len(set(names)) != len(names):
        raise InvalidInput(f"{name}: has too many or repeated parts inside; {_SAVE_AGAIN}.")
    if any(needed not in names for needed in _NEEDED):
        raise InvalidInput(f"{name}: is a zip file, but not an Excel workbook; {_SAVE_AGAIN}.")
    if any(entry.flag_bits & 1 for entry in entries):
        raise InvalidInput(f"{name}: is encrypted; save it without a password.")
    if sum(entry.file_size for entry in entries) > limits.unpacked_bytes:
        raise InvalidInput(
            f"{name}: unpacks to more than {limits.unpacked_bytes // 2**20} MB; split the file."
        )
    for entry in entries:
        if entry.file_size > max(_SMALL, limits.unpacked_ratio * entry.compress_size):
            raise InvalidInput(
                f"{name}: {entry.filename} unpacks to more than {limits.unpacked_ratio} times its size, "
                f"as a zip bomb does; {_SAVE_AGAIN}."
            )


def _check_part(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str, limits: Limits) -> None:
    where = f"{name}: {entry.filename}"
    parser = _Watch(where, limits).parser()
    try:
        for chunk in _chunks(archive, entry):
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise InvalidInput(f"{where} is not well-formed XML ({error}); {_SAVE_AGAIN}.") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        raise InvalidInput(
            f"{where} is damaged or its size is not what the file says; {_SAVE_AGAIN}."
        ) from error


def _chunks(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """Read to the end, so that the checksum is compared; a part longer than declared fails there."""
    with archive.open(entry) as part:
        while chunk := part.read(_CHUNK):
            yield chunk


class _Watch:
    """Counts elements as they pass; nothing is built in memory."""

    def __init__(self, where: str, limits: Limits) -> None:
        self._where = where
        self._limits = limits
        self._seen = 0
        self._row_began = 0

    def parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate()
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._element
        return parser

    def _doctype(self, *_: object) -> None:
        raise InvalidInput(
            f"{self._where} declares a document type (entities), which no workbook needs; refused."
        )

    def _element(self, tag: str, _: object) -> None:
        self._seen += 1
        if tag == "row" or tag.endswith(":row"):
            self._row_began = self._seen
        elif self._row_began and self._seen - self._row_began > self._limits.elements_per_row:
            raise InvalidInput(f"{self._where} has a row with far too many cells; {_SAVE_AGAIN}.")
        if self._seen > self._limits.elements:
            raise InvalidInput(f"{self._where} has too many cells; split the file.")
