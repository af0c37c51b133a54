"""Run by tests: attach to a data directory, say so, and hold on until standard input closes.

Arguments: the data directory, the services with commas between them, then optionally the command line of a
child named "child".
"""

import json
import sys
from pathlib import Path
from typing import get_args

from app.embedded import ChildSpec, ServiceName, attach
from app.errors import AppError


def main() -> None:
    told: list[str] = []
    services = [name for name in get_args(ServiceName) if name in sys.argv[2].split(",")]
    argv = sys.argv[3:]
    children = [ChildSpec("child", argv, stop_seconds=1.0)] if argv else []
    try:
        attachment = attach(Path(sys.argv[1]), services=services, children=children, tell=told.append)
    except AppError as error:
        print(json.dumps({"error": error.message, "details": error.details}), flush=True)
        return
    with attachment:
        said = {"database_url": attachment.database_url, "redis_url": attachment.redis_url, "told": told}
        print(json.dumps(said), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
