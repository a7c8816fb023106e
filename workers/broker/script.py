"""Lua scripts: each is a file in `scripts/`, whose header lists its keys, arguments and replies."""

from hashlib import sha1
from importlib.resources import files

_FILES = files("workers.broker") / "scripts"


class Script:
    """A Lua script, its hash in Redis, and the name of its failpoints."""

    def __init__(self, text: str, name: str = "script") -> None:
        self.text, self.name = text, name
        self.sha1 = sha1(text.encode(), usedforsecurity=False).hexdigest()

    @classmethod
    def load(cls, *parts: str, name: str = "") -> "Script":
        """Return the script that these files make, one after the other.

        Parameters
        ----------
        *parts : str
            Names of files without their ending: shared functions first, the script itself last.
        name : str, optional
            Of its failpoints; default the last part.

        Examples
        --------
        >>> Script.load("streams", "commit").name
        'commit'
        """
        text = "".join((_FILES / f"{part}.lua").read_text("utf-8") for part in parts)
        return cls(text, name or parts[-1])
