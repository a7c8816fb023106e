"""Names that an option gives, one after the other."""

from workers.errors import BadConfiguration


def chosen(
    option: str, given: str | None, separator: str, known: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the names that an option gives, or all that are known.

    Raises
    ------
    BadConfiguration
        If one is not known.

    Examples
    --------
    >>> chosen("--streams", "elec2, sea", ",", ("adult", "elec2", "sea"))
    ('elec2', 'sea')
    """
    names = known if given is None else tuple(name.strip() for name in given.split(separator))
    for name in names:
        if name not in known:
            raise BadConfiguration(f"{option} {name}: unknown; one of {separator.join(known)}")
    return names
