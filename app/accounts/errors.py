"""Errors about who may do what."""

from app.errors import AppError


class SignInNeeded(AppError):
    """Nobody is signed in, or the session has ended."""

    status = 401


class NotAllowed(AppError):
    """This person's role does not include it. Another's object is NotFound instead."""

    status = 403


class TooMany(AppError):
    """Too many tries; `retry_after` seconds are to pass first."""

    status = 429

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after
