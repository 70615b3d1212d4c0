"""What ends a command without an answer."""


class CannotTellError(Exception):
    """Why the question could not be answered, in one line; exit code 2."""
