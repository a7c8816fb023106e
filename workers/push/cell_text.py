"""Numbers and times as people write them: every value that the text of a cell may stand for."""

import re
from datetime import date
from typing import Literal, NamedTuple

from online_svm.stream.cells import time_of

Decimal = Literal[",", "."]
Order = Literal["dmy", "mdy", "ymd"]
TimeUnit = Literal[
    "date", "excel", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"
]

MAX_LENGTH = 64  # characters of the longest text that is taken apart

_BLANK = "[ \u00a0\u2007\u2009\u202f]"
_CODES = (
    "AED|ARS|AUD|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EUR|GBP|HKD|HUF|IDR|ILS|INR|JPY|KRW|MXN|MYR|NOK|"
    "NZD|PHP|PLN|RON|RUB|SAR|SEK|SGD|THB|TL|TRY|TWD|UAH|USD|VND|ZAR|zł|Kč|Ft|lei|RM"
)
_CURRENCY = rf"(?:[A-Z]{{0,2}}\$|[£¤¥฿﷼\u20a0-\u20c0]|(?:kr|Kr|Fr|Rs|руб)\.?|{_CODES})"
_SAME_UNIT = {"EUR": "€", "USD": "$", "US$": "$", "GBP": "£", "Kr": "kr", "Fr": "CHF", "PLN": "zł"}
_NUMBER = re.compile(
    rf"(?:(?P<first>{_CURRENCY}){_BLANK}*(?=\())?(?P<open>\()?{_BLANK}*(?P<sign>[+\-\u2212])?{_BLANK}*(?:(?P<before>{_CURRENCY}){_BLANK}*)?"
    rf"(?P<inner>[+\-\u2212])?(?P<body>[0-9](?:[0-9.,'’]|{_BLANK}(?=[0-9]{{3}}))*|[.,][0-9]+)"
    r"(?P<dash>(?<=[.,])(?:--?|–|—))?(?P<exponent>[eE][+-]?[0-9]{1,4})?"
    rf"{_BLANK}*(?P<after>{_CURRENCY}|%|‰)?{_BLANK}*(?P<last>[\-\u2212])?(?P<close>\))?"
    rf"(?:{_BLANK}+(?P<side>[HS]|[CD][Rr]))?"
)
_GROUPED = re.compile(
    rf"[1-9][0-9]{{0,2}}(?:(?P<sign>[.,'’]|{_BLANK})[0-9]{{3}}(?:(?P=sign)[0-9]{{3}})*)"
)
_INDIAN = re.compile(r"[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}")
_PLAIN = re.compile(r"0|[1-9][0-9]*")
_PHONE = re.compile(rf"\+(?:[0-9]{_BLANK}?){{8,}}")

_CLOCK = (
    r"(?:(?:,?\s+|T)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
    r"(?:\s?(?P<half>[AaPp])\.?[Mm]\.?)?(?:\s?Uhr)?\s?(?P<zone>Z|UTC|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_DATE = re.compile(
    rf"(?P<a>[0-9]{{1,4}})(?P<by>[./-])\s?(?P<b>[0-9]{{1,2}})(?P=by)\s?(?P<c>[0-9]{{1,4}}){_CLOCK}"
)
_NAMED = re.compile(
    r"(?:(?P<day>[0-9]{1,2})\.?[\s-]?(?P<month>[^\W\d_]{3,10})\.?,?[\s-]?"
    r"|(?P<month2>[^\W\d_]{3,10})\.?\s(?P<day2>[0-9]{1,2})(?:st|nd|rd|th)?,?\s)"
    rf"(?P<year>[0-9]{{4}}|[0-9]{{2}}){_CLOCK}"
)
_MONTHS = (
    "january januar jänner janvier enero gennaio januari janeiro",
    "february februar février fevrier febrero febbraio februari fevereiro",
    "march märz mrz mrt mars marzo maart março",
    "april avril abril aprile",
    "may mai mayo maggio mei maio",
    "june juni juin junio giugno junho",
    "july juli juillet julio luglio julho",
    "august août aout agosto augustus",
    "september septembre septiembre settembre setembro",
    "october oktober octobre octubre ottobre outubro",
    "november novembre noviembre novembro",
    "december dezember décembre decembre diciembre dicembre dezembro",
)  # the languages of western Europe
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FIRST_TWO_DIGIT_YEAR = 69  # as POSIX has it: 69 is 1969, 68 is 2068


class Number(NamedTuple):
    """The numbers that a text may stand for; None: it is no number with that decimal sign."""

    comma: float | None
    point: float | None
    unit: str  # the currency, %, or nothing
    has_exponent: bool = False
    side: str = ""  # S of a debit, which is negative, H of a credit

    def by(self, decimal: Decimal) -> float | None:
        """Return the number that is meant with this decimal sign."""
        return self.comma if decimal == "," else self.point


def number_of(text: str) -> Number | None:
    """Return the numbers that a text without surrounding blanks may stand for; None if none.

    Examples
    --------
    >>> found = number_of("1.234,56 €")
    >>> found.comma, found.point, found.unit
    (1234.56, None, '€')
    >>> number_of("3.102").comma, number_of("3.102").point
    (3102.0, 3.102)
    >>> number_of("12 %").point, number_of("(1'234.50)").point, number_of("5.50 DR").point
    (12.0, -1234.5, -5.5)
    >>> number_of("12 apples"), number_of("007")
    (None, None)
    """
    if len(text) > MAX_LENGTH or (found := _NUMBER.fullmatch(text)) is None:
        return None
    if text[0] == "+" and _PHONE.fullmatch(text):
        return None
    signs = [part for part in found.group("sign", "inner", "last") if part]
    units = [part for part in found.group("first", "before", "after") if part]
    is_negative = found["open"] is not None
    if (
        is_negative != (found["close"] is not None)
        or len(signs) + is_negative + (found["side"] is not None) > 1
        or len(units) > 1
    ):
        return None
    body = found["body"]
    if found["dash"]:  # 5,- is a price without cents
        body += "0"
    side = {"H": "H", "CR": "H", "S": "S", "DR": "S"}.get((found["side"] or "").upper(), "")
    is_negative = is_negative or side == "S" or any(part != "+" for part in signs)
    factor = -1.0 if is_negative else 1.0
    readings = [_value(body, sign, found["exponent"] or "") for sign in (",", ".")]
    comma, point = (None if each is None else factor * each + 0.0 for each in readings)
    if comma is None and point is None:
        return None
    unit = units[0].rstrip(".") if units else ""
    return Number(comma, point, _SAME_UNIT.get(unit, unit), bool(found["exponent"]), side)


def _value(body: str, decimal: str, exponent: str) -> float | None:
    whole, _, fraction = body.partition(decimal)
    if fraction and not fraction.isdecimal():
        return None
    if not whole:
        return float(f"0.{fraction}{exponent}")
    if not _PLAIN.fullmatch(whole):
        grouped = _GROUPED.fullmatch(whole)
        is_indian = decimal == "." and _INDIAN.fullmatch(whole)
        if not is_indian and (grouped is None or grouped["sign"] == decimal):
            return None
        whole = re.sub("[^0-9]", "", whole)
    return float(f"{whole}.{fraction or 0}{exponent}")


def times_of(text: str) -> dict[Order, str] | None:
    """Return the times in ISO 8601 that a text may stand for, by the order of the date's parts.

    A text has all three orders if its date is written so that none matters. None: it is no time.

    Examples
    --------
    >>> times_of("31.12.2025 14:30"), times_of("12/31/25 2:30 PM")
    ({'dmy': '2025-12-31T14:30:00'}, {'mdy': '2025-12-31T14:30:00'})
    >>> times_of("01/02/2025")
    {'dmy': '2025-02-01', 'mdy': '2025-01-02'}
    >>> times_of("5. März 2025") == dict.fromkeys(("dmy", "mdy", "ymd"), "2025-03-05")
    True
    """
    if len(text) > MAX_LENGTH:
        return None
    if _ISO.match(text) and time_of(text) is not None:
        return dict.fromkeys(("dmy", "mdy", "ymd"), text)
    if (found := _DATE.fullmatch(text)) is not None:
        return _by_order(found) or None
    if (found := _NAMED.fullmatch(text)) is None:
        return None
    name = " " + (found["month"] or found["month2"]).casefold()
    months = [i for i, names in enumerate(_MONTHS, 1) if name in f" {names}"]
    month = months[0] if len(months) == 1 else 0  # "jui" is the beginning of two
    iso = _iso(found["year"], str(month), found["day"] or found["day2"], found)
    return None if iso is None else dict.fromkeys(("dmy", "mdy", "ymd"), iso)


def _by_order(found: re.Match[str]) -> dict[Order, str]:
    a, b, c = found.group("a", "b", "c")
    orders: dict[Order, tuple[str, str, str]] = {
        "dmy": (c, b, a),
        "mdy": (c, a, b),
        "ymd": (a, b, c),
    }
    dates = {order: _iso(*parts, found) for order, parts in orders.items()}
    possible = {order: iso for order, iso in dates.items() if iso is not None}
    # Where no part distinguishes them, as in 11.11.2025, all orders are possible.
    if len(possible) > 1 and len({*possible.values()}) == 1 and max(len(a), len(c)) == 4:
        return dict.fromkeys(("dmy", "mdy", "ymd"), next(iter(possible.values())))
    return possible


def _iso(year: str, month: str, day: str, clock: re.Match[str]) -> str | None:
    if len(year) not in (2, 4) or len(day) > 2 or len(month) > 2:
        return None
    full = int(year)
    if len(year) == 2:
        full += 1900 if full >= _FIRST_TWO_DIGIT_YEAR else 2000
    try:
        on = date(full, int(month), int(day)).isoformat()
    except ValueError:
        return None
    if clock["hour"] is None:
        return on
    hour, half = int(clock["hour"]), (clock["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half == "p")
    fraction = f".{clock['fraction']}" if clock["fraction"] else ""
    zone = (clock["zone"] or "").replace("UTC", "Z")
    iso = f"{on}T{hour:02}:{clock['minute']}:{clock['second'] or '00'}{fraction}{zone}"
    return iso if time_of(iso) is not None else None
