"""The drawing process: started with the first picture, one picture at a time; pictures are kept."""

import hashlib
import json
import logging
import re
import subprocess
import sys
from collections import OrderedDict
from select import select
from threading import BoundedSemaphore, Lock, Timer
from typing import IO
from xml.sax.saxutils import escape

from app.errors import AppError, ServiceUnavailable
from app.pictures.specs import Chart, Scheme

log = logging.getLogger("curate.pictures")
FORMS = ("svg", "png")
DRAW_SECONDS = 20.0
IDLE_SECONDS = 300.0  # then the process ends: most of the time nobody asks for a new picture
MOST_WAITING = 8
MOST_KEPT = 32 * 2**20  # bytes
CANNOT = "The picture could not be drawn; the figures in it stand on its page."
_ROOT = re.compile(r"<svg ")


class Busy(ServiceUnavailable):
    """Too many pictures are asked for at once."""


class Artist:
    """One for a process of the site; safe to use from many threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._kept_bytes = 0
        self._keeping = Lock()
        self._drawing = Lock()
        self._waiting = BoundedSemaphore(MOST_WAITING)
        self._process: subprocess.Popen[bytes] | None = None
        self._idle: Timer | None = None

    def draw(self, chart: Chart, form: str, scheme: Scheme) -> bytes:
        """The chart's SVG or PNG. Busy while too many wait; ServiceUnavailable when it cannot be drawn."""
        order = json.dumps({"form": form, "spec": chart.drawn_in(scheme)}, sort_keys=True, allow_nan=False)
        key = hashlib.sha256(order.encode()).hexdigest()
        if (found := self._known(key)) is not None:
            return found
        if not self._waiting.acquire(blocking=False):
            raise Busy("Many pictures are being drawn just now: try again in a moment.")
        try:
            with self._drawing:
                # Whoever waited here may find it drawn.
                if (found := self._known(key)) is not None:
                    return found
                drawn = self._ask(order)
        finally:
            self._waiting.release()
        if form == "svg":
            drawn = _named(drawn.decode(), chart).encode()
        self._keep(key, drawn)
        return drawn

    def close(self) -> None:
        with self._drawing:
            self._end()

    def _known(self, key: str) -> bytes | None:
        with self._keeping:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        return None

    def _keep(self, key: str, drawn: bytes) -> None:
        with self._keeping:
            if key not in self._kept:
                self._kept[key] = drawn
                self._kept_bytes += len(drawn)
            while self._kept_bytes > MOST_KEPT and len(self._kept) > 1:
                _, dropped = self._kept.popitem(last=False)
                self._kept_bytes -= len(dropped)

    # --- the process; under self._drawing ---

    def _ask(self, order: str) -> bytes:
        """Once more with a new process where the old one has died meanwhile."""
        for last in (False, True):
            process = self._running()
            try:
                return self._answer(process, order)
            except (OSError, EOFError):
                self._end()
                if last:
                    log.exception("a picture could not be drawn")
                    raise ServiceUnavailable(
                        "The picture could not be drawn; its figures stand beside it."
                    ) from None
        raise AssertionError

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "app.pictures"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        if self._idle is not None:
            self._idle.cancel()
        self._idle = Timer(IDLE_SECONDS, self.close)
        self._idle.daemon = True
        self._idle.start()
        return self._process

    def _answer(self, process: subprocess.Popen[bytes], order: str) -> bytes:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(order.encode() + b"\n")
        process.stdin.flush()
        if not select([process.stdout], [], [], DRAW_SECONDS)[0]:
            raise EOFError(f"nothing came within {DRAW_SECONDS:g} s")
        about = json.loads(_line(process.stdout))
        if not about["ok"]:
            raise AppError(f"This picture cannot be drawn: {about['why']}.")
        body = process.stdout.read(about["bytes"])
        if len(body) < about["bytes"]:
            raise EOFError("it broke off")
        return body

    def _end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.communicate()


def _line(stream: IO[bytes]) -> bytes:
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError("the process ended")
    return line


def _named(svg: str, chart: Chart) -> str:
    """With a name and a description of its own, for whoever opens the file alone and does not see it."""
    about = f"<title>{escape(chart.title)}</title><desc>{escape(chart.words)}</desc>"
    opened = _ROOT.sub('<svg role="img" ', svg, count=1)
    end = opened.index(">") + 1
    return opened[:end] + about + opened[end:]
