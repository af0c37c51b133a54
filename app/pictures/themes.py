"""Colours and type of charts: those of static/site.css, light and dark. Pure."""

from dataclasses import dataclass
from typing import Any

FONT = "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, Ubuntu, Cantarell, Arial, sans-serif"


@dataclass(frozen=True)
class Theme:
    """`steps`: five bars side by side, told apart by lightness alone, so in grey and by any eye too."""

    paper: str
    ink: str
    soft: str
    rule: str
    mark: str
    accent: str
    steps: tuple[str, str, str, str, str]
    heat: tuple[str, str]


LIGHT = Theme(
    paper="#fcfbf8",
    ink="#1c1b19",
    soft="#5b574f",
    rule="#dcd8ce",
    mark="#0b6347",
    accent="#1f4e8c",
    steps=("#073b2b", "#1d6f53", "#4f9c80", "#8cc3ad", "#1f4e8c"),
    heat=("#fcfbf8", "#5aa588"),
)
DARK = Theme(
    paper="#171614",
    ink="#ebe8e1",
    soft="#aca79c",
    rule="#3b3833",
    mark="#6cc7a4",
    accent="#9bc0f2",
    steps=("#c3ead9", "#86cdb0", "#52a587", "#2f7259", "#9bc0f2"),
    heat=("#211f1c", "#2f7259"),
)
THEMES = {"light": LIGHT, "dark": DARK}


def config(theme: Theme) -> dict[str, Any]:
    """Vega-Lite's config."""
    words = {"labelColor": theme.ink, "titleColor": theme.soft, "labelFontSize": 12, "titleFontSize": 12}
    return {
        "background": theme.paper,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            **words,
            "gridColor": theme.rule,
            "domainColor": theme.rule,
            "tickColor": theme.rule,
            "titleFontWeight": "normal",
            "labelLimit": 150,
        },
        "legend": {
            **words,
            "titleFontWeight": "normal",
            "symbolStrokeWidth": 0,
            "symbolOpacity": 1,
            "orient": "top",
        },
        "title": {
            "color": theme.ink,
            "fontSize": 14,
            "anchor": "start",
            "fontWeight": 600,
            "subtitleColor": theme.soft,
        },
        "text": {"color": theme.ink},
        "rule": {"color": theme.soft},
    }
