"""The law of each recurrence count alone: does anything but the size change with r?"""

from looped.scaling.fit import FEW_STARTS, FitResult, fit_law


def laws_by_recurrence(fit: FitResult) -> dict[int, FitResult]:
    """The law of each recurrence count alone, N being its unique parameters N_once + N_rec."""
    options = fit.options
    options["fix"] = options["fix"] | {"phi": 0.0}
    counts = fit.runs["recurrences"].astype(int)
    return {
        r: fit_law(fit.runs[counts == r], **options, polish=FEW_STARTS) for r in sorted(set(counts))
    }
