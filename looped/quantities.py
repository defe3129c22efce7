"""Numbers and durations as a person reads them: one way, wherever something is printed."""

SUFFIXES = ("", "k", "M", "G", "T")


def short(number: float) -> str:
    """28323840 as 28.3M: three digits and a suffix."""
    for suffix in SUFFIXES[:-1]:
        if number < 999.5:
            return f"{number:.3g}{suffix}"
        number /= 1000
    return f"{number:.3g}{SUFFIXES[-1]}"


def duration(seconds: float) -> str:
    """Seconds as 45 s, 2.5 min, 3.4 h or 2.1 d."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    if seconds < 99.5 * 60:
        return f"{seconds / 60:.{1 if seconds < 599 else 0}f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 99.5 * 3600 else f"{seconds / 86400:.1f} d"


def counted(count: int, noun: str) -> str:
    """1 run, 2 runs."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
