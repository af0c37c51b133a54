"""Celery tasks and the asyncio engine that runs conversations."""
