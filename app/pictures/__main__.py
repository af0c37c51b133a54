"""Draws what it is asked for: a JSON line in, a JSON line and the picture's bytes out, until its input ends.

A process of its own, since the library brings a JavaScript engine: 90 MB, a second before the first picture.
"""

import json
import sys
from typing import Any, BinaryIO

VEGA_LITE = "5.21"
SCALE = 2.0  # of PNG, for screens with two dots a pixel


def main() -> None:
    import vl_convert

    orders, answers = sys.stdin.buffer, sys.stdout.buffer
    for line in orders:
        try:
            body = _draw(vl_convert, json.loads(line))
            _answer(answers, {"ok": True, "bytes": len(body)}, body)
        except ValueError as error:
            _answer(answers, {"ok": False, "why": str(error).splitlines()[0][:300]}, b"")


def _draw(library: Any, order: dict[str, Any]) -> bytes:
    """`allowed_base_urls`: nothing is fetched, whatever a specification says."""
    shared = {"vl_version": VEGA_LITE, "allowed_base_urls": []}
    if order["form"] == "png":
        return bytes(library.vegalite_to_png(order["spec"], scale=SCALE, **shared))
    return str(library.vegalite_to_svg(order["spec"], **shared)).encode()


def _answer(answers: BinaryIO, about: dict[str, Any], body: bytes) -> None:
    answers.write(json.dumps(about).encode() + b"\n" + body)
    answers.flush()


if __name__ == "__main__":
    main()
