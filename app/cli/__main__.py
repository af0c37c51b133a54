"""`python -m app.cli`: the `curate` command without its script."""

from app.cli.main import main

main()
