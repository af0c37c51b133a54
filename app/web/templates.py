"""Templates: everything escaped, nothing undefined, a page or one block of it."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.web import formats


class Templates:
    """`ui` (the macros of partials/ui.html) and the filters of `formats` stand in every template."""

    def __init__(self, folder: Path) -> None:
        self.environment = Environment(
            loader=FileSystemLoader(folder),
            autoescape=True,  # for every name: no template here is anything but HTML
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self.environment.filters.update(formats.FILTERS)
        self.environment.globals["ui"] = self.environment.get_template("partials/ui.html").module

    def render(self, name: str, **values: Any) -> str:
        return self.environment.get_template(name).render(values)

    def render_block(self, name: str, block: str, **values: Any) -> str:
        """One block of a page, as htmx swaps it in. KeyError when the page has no such block."""
        template = self.environment.get_template(name)
        return "".join(template.blocks[block](template.new_context(values)))
