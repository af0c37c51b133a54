"""Logs as one JSON object a line, each with the id of the request or the number of the run it belongs to."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
run_id: ContextVar[int | None] = ContextVar("run_id", default=None)


class JsonLines(logging.Formatter):
    """time, level, logger, message, the ids above, whatever `extra={"fields": {…}}` adds, and a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for known in (request_id, run_id):
            if (current := known.get()) is not None:
                line[known.name] = current
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


@contextmanager
def about_run(number: int) -> Iterator[None]:
    """What is logged within is about that run."""
    token = run_id.set(number)
    try:
        yield
    finally:
        run_id.reset(token)


def log_to(stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Send every log of this process to the stream (standard error), as JSON lines."""
    log_by(logging.StreamHandler(stream or sys.stderr), level)


def log_by(handler: logging.Handler, level: int) -> None:
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
