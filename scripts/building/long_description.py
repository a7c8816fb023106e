"""The long description of a release: README.md, whose links lead to the site of the documents."""

import re

from setuptools.command.egg_info import egg_info

_TARGET = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:)([^)\s]+)\)")


class AbsoluteLinks(egg_info):
    """Write the metadata of a build, of which every wheel and source archive takes its own."""

    def run(self) -> None:
        """Lead the links to `Documentation` of `[project.urls]`."""
        metadata = self.distribution.metadata
        address = metadata.project_urls["Documentation"]
        metadata.long_description = absolute(metadata.long_description, address)
        super().run()


def absolute(page: str, address: str) -> str:
    """Return the first page with links and pictures that do not depend on where it is shown.

    >>> absolute("![A page](docs/images/a.png), [more](docs/b.md#c)", "https://example.org/")
    '![A page](https://example.org/_images/a.png), [more](https://example.org/docs/b.html#c)'
    """

    def lead(found: re.Match[str]) -> str:
        picture, text, path = found.groups()
        place = f"_images/{path.rpartition('/')[2]}" if picture else path.replace(".md", ".html")
        return f"{picture}{text}({address.rstrip('/')}/{place})"

    return _TARGET.sub(lead, page)
