"""The sentence that answers the question."""

from dataclasses import dataclass

from looped.scaling.analysis import Analysis

TYPICAL_RECURRENCES = 4


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one recipe says about the worth of a recurrence.

    Attributes:
        recipe: its name.
        num_runs: runs that were fitted.
        phi: the exponent; null when it cannot be told.
        held: whether phi was given instead of fitted.
        recurrences: r of the example; null without looped runs.
        worth: r^phi of the example, in blocks; null when phi is, or without looped runs.
        low: lower end of phi's interval; null when there is none.
        high: upper end; null likewise.
        percent: nominal coverage of the interval, such as 95.
        because: why phi cannot be told; empty when it can.
    """

    recipe: str
    num_runs: int
    phi: float | None
    held: bool
    recurrences: int | None
    worth: float | None
    low: float | None
    high: float | None
    percent: float
    because: tuple[str, ...]

    @classmethod
    def of(cls, recipe: str, analysis: Analysis) -> "Answer":
        """The answer of an analysis."""
        fit = analysis.fit
        interval = analysis.intervals.intervals[analysis.kind]
        looped = [int(r) for r in fit.runs["recurrences"].unique() if r > 1]
        r = min(looped, key=lambda count: abs(count - TYPICAL_RECURRENCES), default=None)
        return cls(
            recipe=recipe,
            num_runs=fit.num_runs,
            phi=fit.phi,
            held="phi" in fit.held,
            recurrences=r,
            worth=None if fit.phi is None or r is None else float(r**fit.phi),
            low=interval.low,
            high=interval.high,
            percent=100 * interval.level,
            because=fit.faults,
        )

    @property
    def sentence(self) -> str:
        """In words, without markup."""
        if self.phi is None:
            runs = "This run" if self.num_runs == 1 else f"These {self.num_runs} runs"
            return f"{runs} cannot tell what a recurrence is worth."
        if self.held:
            first = f"A recurrence was taken to be worth r^{self.phi:.2f}, not measured"
        else:
            first = f"One recurrence is worth r^{self.phi:.2f}"
        return f"{first}{self.example}. {self.certainty}"

    @property
    def example(self) -> str:
        """What the exponent means at one recurrence count; empty without looped runs."""
        if self.worth is None:
            return ""
        return f": at r = {self.recurrences} the shared block counts as {self.worth:.1f} blocks"

    @property
    def certainty(self) -> str:
        """The interval and the number of runs."""
        runs = f"{self.num_runs} runs."
        if self.held:
            return runs
        if self.low is None or self.high is None:
            return f"No interval; {runs}"
        return f"{self.percent:g} % interval {self.low:.2f} to {self.high:.2f}, {runs}"
