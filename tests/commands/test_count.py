"""`looped count` agrees with the published counts and with what `fit` would build."""

import json
import subprocess
import sys
import time

import pytest

from looped.architecture import Architecture
from looped.cli import main
from tests.test_architecture import architecture_of, published_counts


@pytest.mark.parametrize("row", published_counts()[::7], ids=str)
def test_published_counts_through_the_command(row, capsys):
    """Every argument reaches the count: groups, N_once, N_rec and both conventions."""
    architecture = architecture_of(row)
    arguments = []
    for name, value in architecture.as_record().items():
        arguments += [f"--model.{name}", "null" if value is None else str(value)]
    assert main(["count", *arguments, "--json", "-"]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert counts["params"]["recurrent"] == int(row["params_recurrent"])
    assert counts["params"] == architecture.parameter_groups().as_record()
    assert counts["flops_per_token"] == {
        "paper": int(row["flops_per_token"]),
        "causal": architecture.flops_per_token("causal"),
    }


def test_command_line_wins_over_the_configuration(tmp_path, capsys):
    config = tmp_path / "c.yaml"
    config.write_text("model: {width: 64, num_heads: 2, recurrences: 2, head_lr: 0.1}\n")
    assert main(["count", "--config", str(config), "--model.recurrences", "8", "--json", "-"]) == 0
    counts = json.loads(capsys.readouterr().out)
    expected = Architecture(width=64, num_heads=2, recurrences=8)
    assert counts["flops_per_token"]["paper"] == expected.flops_per_token()


def test_it_prints_a_table_and_writes_a_file(tmp_path, capsys):
    sizes = ["--model.width", "64", "--model.num_heads", "2"]
    assert main(["count", *sizes]) == 0
    groups = Architecture(width=64, num_heads=2).parameter_groups()
    assert f"{groups.n_once:,}" in capsys.readouterr().out
    assert main(["count", *sizes, "--measured", "--json", str(tmp_path / "a.json")]) == 0
    counts = json.loads((tmp_path / "a.json").read_text())
    assert counts["flops_per_token"]["measured"] == pytest.approx(
        counts["flops_per_token"]["paper"], rel=0.01
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: model.width, model.num_heads"),
        (["--model.width", "30", "--model.num_heads", "4"], "width 30 is not divisible"),
        (
            ["--model.width", "wide", "--model.num_heads", "4"],
            "model.width: got wide, expected a whole number",
        ),
        (["--model.width", "null"], "required: model.width"),
        (["--model.width", "3.5", "--model.num_heads", "4"], "model.width: got 3.5"),
        (
            ["--model.width", "64", "--model.num_heads", "4", "--model.injection", "x"],
            "model.injection: got x, expected linear, additive, none or null",
        ),
        (["--model.widht", "30"], "did you mean --model.width?"),
        (["--config", "missing.yaml"], "missing.yaml: No such file"),
    ],
)
def test_mistakes_are_one_line(arguments, words, capsys):
    assert main(["count", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_a_misspelt_name_in_the_configuration_is_named(tmp_path, capsys):
    config = tmp_path / "c.yaml"
    config.write_text("model: {width: 64, num_heads: 2, recurences: 2}\n")
    assert main(["count", "--config", str(config)]) == 2
    assert "model.recurences: did you mean model.recurrences?" in capsys.readouterr().err


def test_it_answers_within_a_second_and_without_torch():
    code = (
        "import sys; from looped.cli import main; "
        "main(['count', '--model.width', '64', '--model.num_heads', '2']); "
        "sys.exit('torch' in sys.modules)"
    )
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert time.monotonic() - started < 1
