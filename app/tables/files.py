"""Files: one that may be read, and one that is written whole or not at all."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from app.errors import InvalidInput

_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EISDIR}


def checked_size(path: Path, name: str, limit: int) -> int:
    """Size in bytes of a regular, non-empty file of at most `limit` bytes.

    Raises InvalidInput for anything else: a pipe or a device would never end.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise InvalidInput(f"{name}: cannot be read ({error.strerror}); check the path.") from error
    if not stat.S_ISREG(found.st_mode):
        raise InvalidInput(f"{name}: is not a file; give the path of an .xlsx or .csv file.")
    if found.st_size == 0:
        raise InvalidInput(f"{name}: the file is empty (0 bytes); export or upload it again.")
    if found.st_size > limit:
        raise InvalidInput(
            f"{name}: {found.st_size / 2**20:.1f} MB are more than the {limit / 2**20:.0f} MB that are read; "
            "split the file."
        )
    return found.st_size


@contextlib.contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """Gives a temporary path beside `path`; it takes that name when the block ends well, else vanishes.

    Raises InvalidInput when the folder cannot be written or the disk is full.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as error:
        if error.errno not in _DISK_ERRORS:  # rows may come from a socket: its errors are not the file's
            raise
        raise _unwritable(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(
        f"{path}: cannot be written ({error.strerror}); choose another place or free some space."
    )
