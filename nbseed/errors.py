"""The exceptions; each says what was given and what would be legal."""


class NbseedError(Exception):
    """Base of all errors that nbseed raises on purpose."""


class SeedError(NbseedError, ValueError):
    """A seed outside 0 to 2**32 - 1, or not an integer."""


class StateError(NbseedError, ValueError):
    """A state that does not fit its generator; nothing was set."""


class CoverageError(NbseedError):
    """A snapshot and the generators that exist now do not name the same set; nothing was set."""


class EntropyError(NbseedError):
    """Under ``%seed N --strict``: a call took entropy that no seed controls."""


class RegistrationError(NbseedError, ValueError):
    """A generator that cannot be registered, or a name that is taken or unknown."""


class CheckpointError(NbseedError):
    """A checkpoint, run or option that does not exist."""


class FileError(NbseedError, ValueError):
    """A file that cannot be read or written, or holds something else; nothing was set."""


class CannotTellError(NbseedError):
    """A question that could not be answered: a kernel that died, a notebook that is none."""
