"""`python -m app.simulator`: serves until SIGTERM or SIGINT; the first line of output is the base URL."""

import argparse
import asyncio
import os
import signal
import sys
import threading

import uvloop

from app.errors import AppError, InvalidInput
from app.simulator.completions import MODELS
from app.simulator.running import LOOPBACK, base_url, listen, serve
from app.simulator.server import Endpoint
from app.simulator.settings import FAULTS, SimulatorSettings


def main() -> int:
    arguments = _parser().parse_args()
    try:
        endpoint = Endpoint(_settings(arguments), api_key=_api_key(arguments.api_key_env))
        listener = listen(arguments.host, arguments.port)
    except InvalidInput as error:
        print(error.message, file=sys.stderr)
        return 2
    except AppError as error:
        print(error.message, file=sys.stderr)
        return 1
    print(base_url(listener), flush=True)

    async def run() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        if arguments.with_parent:
            _watch_parent(loop, stop)
        await serve(endpoint, listener, stop)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
    return 0


def _watch_parent(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Stops when standard input ends, as it does when the parent dies, however it dies."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def _settings(arguments: argparse.Namespace) -> SimulatorSettings:
    names = ("latency", "jitter", "seed", "capacity", "retry_after", "hang", "drip")
    change = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    change["faults"] = dict(_fault(text) for text in arguments.fault_rate)
    change["unsupported"] = tuple(arguments.unsupported)
    return SimulatorSettings().changed(change)


def _fault(text: str) -> tuple[str, float]:
    kind, _, rate = text.partition("=")
    try:
        return kind, float(rate)
    except ValueError:
        raise InvalidInput(f"--fault-rate {text}: write KIND=RATE, for instance 429=0.05.") from None


def _api_key(variable: str | None) -> str | None:
    if variable is None:
        return None
    if not os.environ.get(variable):
        raise InvalidInput(f"--api-key-env {variable}: that environment variable is not set.")
    return os.environ[variable]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m app.simulator",
        description=f"Serves simulated models as an OpenAI-compatible endpoint: {', '.join(MODELS)}.",
        epilog="Faults: " + "; ".join(f"{kind}: {what}" for kind, what in FAULTS.items()),
    )
    add = parser.add_argument
    add("--host", default=LOOPBACK)
    add("--port", type=int, default=0, help="0: any free port")
    add("--latency", type=float, help="seconds from a request to its answer")
    add("--jitter", type=float, help="share by which the latency varies, 0-1")
    add("--seed", type=int, help="another seed gives other replies and other faults")
    add("--fault-rate", action="append", default=[], metavar="[MODEL:]KIND=RATE", help="may be repeated")
    add("--capacity", type=int, help="answer 429 beyond so many requests in flight")
    add("--retry-after", help="what a 429 says in Retry-After")
    add("--hang", type=float, help="seconds that hang and drip last")
    add("--drip", type=float, help="seconds between two bytes of a drip")
    add(
        "--unsupported",
        action="append",
        default=[],
        metavar="PARAMETER",
        help="answer 400 to it; may be repeated",
    )
    add("--api-key-env", metavar="VARIABLE", help="ask for the key in this environment variable")
    add("--with-parent", action="store_true", help="end when standard input is closed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
