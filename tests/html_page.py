"""HTML as a reader meets it."""

from __future__ import annotations

from html.parser import HTMLParser


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append(data.strip())


def texts_of(html: str) -> list[str]:
    """The pieces of text between the tags."""
    reader = _Texts()
    reader.feed(html)
    reader.close()
    return reader.texts
