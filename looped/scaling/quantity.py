"""Large numbers as a reader says them: 67.8M parameters, 4.64 x 10^17 FLOPs."""

import math
import re

PREFIXES = ("", "k", "M", "G", "T")
"""Beyond a thousand T a power of ten says more than a prefix."""

SUPERSCRIPTS = str.maketrans(
    "0123456789-",
    "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b",
)
TIMES = "\u00d7"
MINUS = "\u2212"


def quantity(value: float) -> str:
    """Three digits with an SI prefix, or times a power of ten from 10^15 on."""
    if not math.isfinite(value):
        return str(value)
    exponent = int(f"{abs(value):.2e}".split("e")[1])  # of the rounded number: 999.9 is 1k
    if exponent >= 3 * len(PREFIXES) or (value and exponent < -3):
        return power_of_ten(value)
    step = max(exponent // 3, 0)
    return f"{value / 1000**step:.3g}{PREFIXES[step]}"


def power_of_ten(value: float) -> str:
    """Three digits times a power of ten, with superscripts: no markup is needed to show it."""
    mantissa, exponent = f"{value:.2e}".split("e")
    power = f"10{str(int(exponent)).translate(SUPERSCRIPTS)}"
    digits = mantissa.rstrip("0").rstrip(".")
    return power if digits == "1" else f"{digits}{TIMES}{power}"


def level_in_words(level: str) -> str:
    """The level of a run, `4.64e+17 FLOPs` or `2.5e+05 tokens`, as a reader says it."""
    number, _, unit = level.partition(" ")
    try:
        return f"{quantity(float(number))} {unit}".rstrip()
    except ValueError:
        return level


def signed(value: float, *, digits: int = 3) -> str:
    """With its sign, a minus being a minus and no hyphen."""
    return with_minus(f"{value:+.{digits}f}")


def with_minus(text: str) -> str:
    """The hyphen before every number made a minus; words, ranges, options and exponents stay."""
    return re.sub(r"(?<![\w.)-])-(?=\.?\d)", MINUS, text)
