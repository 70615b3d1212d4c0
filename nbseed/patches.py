"""Patches: attributes of other people's modules and classes, wrapped for a while and put back."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


class Patches:
    """What is wrapped now. `undo` leaves everything as it was."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any]] = []
        self._aliases: list[tuple[MutableMapping[str, Any], str, Any, Any]] = []

    def __bool__(self) -> bool:
        return bool(self._done)

    def put(self, owner: Any, name: str, wrap: Wrap) -> None:
        """Replace an attribute by a wrapper of it, if there is one and it is not replaced yet."""
        original = vars(owner).get(name)
        if original is None or any(o is owner and n == name for o, n, *_ in self._done):
            return
        known = [wrapper for _, _, first, wrapper in self._done if first is original]
        wrapper = known[0] if known else wrap(original)
        setattr(owner, name, wrapper)
        self._done.append((owner, name, original, wrapper))

    def alias(self, namespace: MutableMapping[str, Any], names: tuple[str, ...]) -> None:
        """Do the same for variables that are bound to an original: ``from random import seed``."""
        for name in names:
            for _, _, original, wrapper in self._done:
                if namespace.get(name) is original:
                    namespace[name] = wrapper
                    self._aliases.append((namespace, name, original, wrapper))
                    break

    def undo(self) -> None:
        """Put the originals back; one that somebody else has wrapped since is left to them."""
        for namespace, name, original, wrapper in reversed(self._aliases):
            if namespace.get(name) is wrapper:
                namespace[name] = original
        for owner, name, original, wrapper in reversed(self._done):
            if vars(owner).get(name) is wrapper:
                setattr(owner, name, original)
        self._aliases.clear()
        self._done.clear()
