"""Pages that are the same for everybody signed out, kept as they were rendered until what they show changes.

A page is kept under its address with the version of the data that it was made of; each request asks for that
version anew, so none is older than the database. Of many that miss at once one renders and the others wait.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock

MOST_BYTES = 48 * 2**20


@dataclass(frozen=True)
class KeptPage:
    body: bytes
    digest: bytes  # SHA-256


class KeptPages:
    """The pages used last, up to so many bytes; one version of each address."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._pages: OrderedDict[str, tuple[Hashable, KeptPage]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()
        self._making: dict[tuple[str, Hashable], Lock] = {}

    def get(self, address: str, version: Hashable, render: Callable[[], bytes]) -> KeptPage:
        """The page of that version; `render` is called once however many ask at the same time."""
        if (found := self._find(address, version)) is not None:
            return found
        with self._lock:
            making = self._making.setdefault((address, version), Lock())
        try:
            with making:
                if (found := self._find(address, version)) is not None:
                    return found
                body = render()
                page = KeptPage(body, hashlib.sha256(body).digest())
                self._keep(address, version, page)
                return page
        finally:
            with self._lock:
                self._making.pop((address, version), None)

    def _find(self, address: str, version: Hashable) -> KeptPage | None:
        with self._lock:
            kept = self._pages.get(address)
            if kept is None or kept[0] != version:
                return None
            self._pages.move_to_end(address)
            return kept[1]

    def _keep(self, address: str, version: Hashable, page: KeptPage) -> None:
        with self._lock:
            if (before := self._pages.pop(address, None)) is not None:
                self._bytes -= len(before[1].body)
            self._pages[address] = version, page
            self._bytes += len(page.body)
            while self._bytes > self._most and self._pages:
                _, (_, dropped) = self._pages.popitem(last=False)
                self._bytes -= len(dropped.body)
