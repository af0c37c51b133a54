"""Logs as one JSON object a line, each with the id of the request that it belongs to."""

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)


class JsonLines(logging.Formatter):
    """time, level, logger, message, request_id, whatever `extra={"fields": {…}}` adds, and a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (current := request_id.get()) is not None:
            line["request_id"] = current
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def log_to(stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Send every log of this process to the stream (standard error), as JSON lines."""
    log_by(logging.StreamHandler(stream or sys.stderr), level)


def log_by(handler: logging.Handler, level: int) -> None:
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
