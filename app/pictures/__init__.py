"""Charts from figures: declared as Vega-Lite, drawn as SVG and PNG by a process of its own, and kept."""

from app.pictures.drawing import FORMS, Artist
from app.pictures.specs import (
    SCHEMES,
    Chart,
    Scheme,
    confusion,
    differences,
    grouped_bars,
    heat_map,
    profile,
)

__all__ = [
    "FORMS",
    "SCHEMES",
    "Artist",
    "Chart",
    "Scheme",
    "confusion",
    "differences",
    "grouped_bars",
    "heat_map",
    "profile",
]
