"""`python -m app.embedded DATA_DIR READY_FD`: become the supervisor, detached from the command at hand."""

import os
import sys
from pathlib import Path

from app.embedded.supervisor import serve


def main() -> None:
    data_dir, ready = Path(sys.argv[1]), int(sys.argv[2])
    if os.fork() == 0:
        serve(data_dir, ready)


if __name__ == "__main__":
    main()
