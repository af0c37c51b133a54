"""Errors that a user can act on. Each carries the HTTP status that a page or the API answers with."""


class AppError(Exception):
    """One clear sentence that names the thing and the remedy."""

    status = 400

    def __init__(self, message: str, *, details: list[str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details or []


class InvalidInput(AppError):
    """What was given cannot be used as it is."""

    status = 422


class NotFound(AppError):
    """No such object, or not one that this person may see."""

    status = 404


class Conflict(AppError):
    """The object's present state does not allow this."""

    status = 409


class ServiceUnavailable(AppError):
    """The database, the broker or an embedded service does not answer."""

    status = 503
