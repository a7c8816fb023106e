"""Read what a feed published: the one way from the bytes of an entry to an object."""

from typing import Any

import orjson

from workers.message.compact.decode import expand
from workers.message.compact.form import KEY


def parse(data: bytes) -> Any:
    """Return a published message; one in the compact form in the shape of a full answer.

    Parameters
    ----------
    data : bytes
        Of the field `p` of an entry; any bytes at all.

    Raises
    ------
    ValueError
        If they are not JSON, or have the compact form's field and are none.

    Examples
    --------
    >>> parse(b'{"v":2,"status":"label","seq":3}')["status"]
    'label'
    >>> sent = b'[40,1,1,3,99,7,7,7,0,null,3,null,["a","b"],750000,500000,1000000,0,0,2.5]'
    >>> parse(b'{"v":2,"id":"tx-1","seq":41,"c":%b}' % sent)["probability"]
    0.75
    """
    message = orjson.loads(data)
    return expand(message) if isinstance(message, dict) and KEY in message else message
