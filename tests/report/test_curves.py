"""Training curves, from what loggers leave in run directories."""

import pytest

from looped.report.curves import read_trained_run
from looped.report.curves_figure import MAX_POINTS, curves_figure
from looped.scaling.figure_style import palette_of
from tests.scaling.records import record_of, save_checkpoint, write_run
from tests.scaling.test_runs import ROWS

HEAD = "epoch,step,tokens,train_flops,train_loss,val_loss\n"


def curve(*steps: int, loss: float) -> str:
    lines = [f"0,{step},{step * 10},{step * 100.0},{loss},\n" for step in steps]
    validation = f"0,{steps[-1]},,,,{loss}\n"  # has a line of its own
    return HEAD + "".join(lines) + validation


@pytest.fixture
def home(tmp_path):
    return write_run(tmp_path / "run", record_of(ROWS[0]))


def test_a_curve_is_read_beside_its_record(home):
    """Lines without a training loss are none of its points."""
    (home / "metrics.csv").write_text(curve(10, 20, 30, loss=3.0))
    run = read_trained_run(home / "run.json")
    assert run.train_flops.tolist() == [1000.0, 2000.0, 3000.0]
    assert run.train_loss.tolist() == [3.0] * 3
    assert run.record.run == str(ROWS[0]["run"])


def test_a_checkpoint_knows_its_run_directory(home):
    """A run may be given by its checkpoint alone."""
    path = home / "checkpoints" / "last.ckpt"
    path.parent.mkdir()
    save_checkpoint(path, record_of(ROWS[0]))
    (home / "metrics.csv").write_text(curve(10, 20, loss=3.0))
    assert read_trained_run(path).has_curve


def test_starts_are_joined_and_the_later_speaks(home):
    """A start that was killed had gone on beyond the checkpoint from which the next resumed."""
    (home / "metrics-start=1.csv").write_text(curve(10, 20, 30, loss=4.0))
    (home / "metrics-start=2.csv").write_text(curve(20, 30, 40, loss=3.0))
    (home / "metrics-start=10.csv").write_text(curve(40, 50, loss=2.0))
    (home / "metrics.csv").write_text(curve(50, 60, loss=1.0))
    run = read_trained_run(home / "run.json")
    assert run.train_flops.tolist() == [1e3, 2e3, 3e3, 4e3, 5e3, 6e3]
    assert run.train_loss.tolist() == [4.0, 3.0, 3.0, 2.0, 1.0, 1.0]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", HEAD + "0,1,1,x,nan,\n", "\x00\xff"])
def test_a_curve_that_cannot_be_read_stops_nothing(home, text):
    """The run is there, without a curve."""
    (home / "metrics.csv").write_text(text, encoding="latin-1")
    run = read_trained_run(home / "run.json")
    assert run is not None
    assert not run.has_curve


def test_a_record_that_has_gone_is_no_run(tmp_path):
    """Deleted between the reading of the runs and the drawing of the page."""
    assert read_trained_run(tmp_path / "run.json") is None


def test_the_figure_has_a_line_and_a_last_validation_for_each_run(home):
    """However long the curve, with few points; the mark at the final loss."""
    (home / "metrics.csv").write_text(curve(*range(1, 1000), loss=3.0))
    run = read_trained_run(home / "run.json")
    run.record.validation[-1] = type(run.record.validation[-1])(
        **{**vars(run.record.validation[-1]), "train_flops": 99_900}
    )
    r = run.record.model["recurrences"]
    (ax,) = curves_figure([(r, run)], palette=palette_of([r])).axes
    line, mark = ax.get_lines()
    assert len(line.get_xdata()) == MAX_POINTS
    assert line.get_ydata() == pytest.approx(3.0)
    assert mark.get_xydata().tolist() == [[99_900, run.record.validation[-1].loss]]


def test_validations_stand_in_for_a_curve(home):
    """Runs of other loggers show how their validation loss fell; without any there is no figure."""
    run = read_trained_run(home / "run.json")
    r = run.record.model["recurrences"]
    palette = palette_of([r])
    assert run.validations == []  # this record does not know its FLOPs
    assert curves_figure([(r, run)], palette=palette) is None
    run.record.validation[:] = [
        type(entry)(**{**vars(entry), "train_flops": 100 * (i + 1)})
        for i, entry in enumerate(run.record.validation)
    ]
    line, _ = curves_figure([(r, run)], palette=palette).axes[0].get_lines()
    assert line.get_xdata().tolist() == [100.0, 200.0]


def test_each_recurrence_count_has_a_panel(home):
    """The curves of dozens of runs in one panel were a tangle; axes are shared to compare."""
    (home / "metrics.csv").write_text(curve(10, 20, 30, loss=3.0))
    run = read_trained_run(home / "run.json")
    palette = palette_of([1, 4, 8])
    panels = curves_figure([(4, run), (1, run), (8, run), (4, run)], palette=palette).axes[:3]
    assert [ax.get_title(loc="left") for ax in panels] == ["r = 1", "r = 4", "r = 8"]
    colours = [{line.get_color() for line in ax.get_lines()} for ax in panels]
    assert colours == [{palette[r].colour} for r in (1, 4, 8)]
    drawn = [sum(len(line.get_xdata()) > 1 for line in ax.get_lines()) for ax in panels]
    assert drawn == [1, 2, 1]
    assert len({ax.get_ylim() for ax in panels}) == 1


def test_a_control_is_drawn_as_what_it_stands_for(home):
    """An unshared run of four passes is fitted as r = 1, of which alone the palette knows."""
    (home / "metrics.csv").write_text(curve(10, 20, 30, loss=3.0))
    run = read_trained_run(home / "run.json")
    run.record.model["recurrences"] = 4
    palette = palette_of([1])
    line = curves_figure([(1, run)], palette=palette).axes[0].get_lines()[0]
    assert line.get_color() == palette[1].colour
