"""The `curate` command."""

from app.cli.main import app, main

__all__ = ["app", "main"]
