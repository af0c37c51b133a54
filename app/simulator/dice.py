"""Chance that repeats: every draw is a hash of a seed and a label, the same on every machine."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draws that depend on nothing but the seed texts and the label of the draw."""

    __slots__ = ("_key",)

    def __init__(self, *seeds: str) -> None:
        text = "\x1f".join(seeds).encode("utf-8", "surrogatepass")
        self._key = blake2b(text, digest_size=32).digest()

    def unit(self, label: str) -> float:
        """A number in [0, 1)."""
        drawn = blake2b(label.encode(), digest_size=7, key=self._key).digest()
        return int.from_bytes(drawn, "big") / (1 << 56)

    def pick(self, label: str, options: Sequence[T]) -> T:
        return options[int(self.unit(label) * len(options))]
