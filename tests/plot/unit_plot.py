# SPDX-License-Identifier: Apache-2.0
"""The test of plot/: made-up results, every kind of picture, and the ways in which input can be bad. PYTHONPATH names plot/."""
import contextlib
import csv
import io
import json
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import style  # says what Python lacks

import netCDF4
import numpy as np

import accuracy
import convergence_panel
import grid
import lists
import plot_items
import plot_study
import plot_table
import read
import run_check
import sandwich_panel
import sweep_panel

LABELS = ("a HMC", "a PE N=2", "a PE s=5 N=2", "b HMC", "b PE N=2", "b PE s=5 N=2")
MODES = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
STUDY = """
name = "check"
title = "Self-check"
[plot]
{plot}
"""
SETTING = """
[[setting]]
label = "{label}"
target = "plane"
target_settings = {{ scenario = "{scenario}" }}
chains = 1
published = {{ "mean[0]" = [0.1, 0.2] }}
"""


def write_csv(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])


def write_draws(path, x, beta):
    with netCDF4.Dataset(path, "w") as data:
        posterior = data.createGroup("posterior")
        for name, size in zip(("chain", "draw", "x_dim_0"), x.shape):
            posterior.createDimension(name, size)
        posterior.createVariable("x", "f8", ("chain", "draw", "x_dim_0"))[:] = x
        if beta is not None:
            weighted = data.createGroup("weighted")
            for name, size in zip(("chain", "draw", "pseudo_sample"), beta.shape):
                weighted.createDimension(name, size)
            weighted.createVariable("beta", "f8", ("chain", "draw", "pseudo_sample"))[:] = beta


def write_inputs(folder, dim):
    """Results of three settings in two scenarios; plain HMC stays in the first mode."""
    generator = np.random.default_rng(1)
    (folder / "draws").mkdir(parents=True)
    (folder / "contours").mkdir()
    rows = []
    for rank, label in enumerate(LABELS):
        for replicate in range(4):
            for quantity in ("mean[0]", "mean[1]", "log_z"):
                error = generator.normal() / (1 + rank)
                truth = "" if quantity == "log_z" else 0
                rows.append([label, replicate, quantity, error, 0.1, truth, error, 100])
            if "HMC" in label:  # log_z, the last one, between bounds
                rows += [[label, replicate, "log_z_lower", error - 1, 0.1, "", "", 100],
                         [label, replicate, "log_z_upper", error + 1, 0.1, "", "", 100]]
        mode = np.zeros((1, 200), int) if "HMC" in label else generator.integers(3, size=(1, 200))
        x = (MODES[mode] + 0.3 * generator.normal(size=(1, 200, 2)))[:, :, :dim]
        beta = None if "HMC" in label else generator.uniform(size=(1, 200, 2))
        write_draws(folder / "draws" / f"{read.file_key(label)}.nc", x, beta)
    write_csv(folder / "results.csv", read.RESULT_COLUMNS, rows)
    write_csv(folder / "timings.csv", read.TIMING_COLUMNS, [[label, 2.0] for label in LABELS])
    grid = np.linspace(-4, 4, 81)
    x, y = np.meshgrid(grid, grid if dim == 2 else [0.0])
    parts = [-((x - mode[0]) ** 2 + (dim == 2) * (y - mode[1]) ** 2) / 0.18 for mode in MODES]
    log_density = np.logaddexp.reduce(parts)
    table = {"x": grid.tolist(), "log_density": log_density[0].tolist()}
    if dim == 2:
        table = {"x": grid.tolist(), "y": grid.tolist(), "log_density": log_density.tolist()}
    (folder / "contours" / "plane.json").write_text(json.dumps(table), encoding="utf-8")


def run_script(folder, plot):
    """(exit status, what it said on standard error) for a [plot] table."""
    settings = "".join(SETTING.format(label=label, scenario=label[0]) for label in LABELS)
    study = folder / "check.toml"
    study.write_text(STUDY.format(plot=plot) + settings, encoding="utf-8")
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        status = plot_study.main([str(folder), "--study", str(study)])
    return status, said.getvalue()


def pictures(folder):
    return [(folder / f"check.{form}").read_bytes() for form in ("png", "svg")]


def check_numbers(folder):
    """RMSEs against a plain loop, published ones against the formula, and the count of modes."""
    results = read.read_results(folder / "results.csv")
    errors = results.estimate["a HMC"]["mean[0]"]
    value, low, high = accuracy.rmse(accuracy.squared_errors(results, "a HMC", ["mean[0]"]))
    assert abs(value - (sum(e * e for e in errors) / len(errors)) ** 0.5) < 1e-12
    assert low < value < high
    setting = read.Setting("a HMC", published={"mean[0]": (3.0, 4.0)})
    assert accuracy.published_rmse(results, setting, "a HMC", ["mean[0]"]) == 5.0
    assert accuracy.published_rmse(results, setting, "a HMC", ["mean[0]", "mean[1]"]) is None
    setting.published_rmse["mean[1]"] = 12.0
    both = accuracy.published_rmse(results, setting, "a HMC", ["mean[0]", "mean[1]"])
    assert both == ((25 + 144) / 2) ** 0.5
    assert accuracy.quantities_with_truth(results, [], results.labels) == ["mean[0]", "mean[1]"]
    context = plot_study.Context(folder, read.Study("check", "", [], {"count_modes": True}, {}))
    panel = plot_study.KINDS["scatter"](context)
    panel.contours = {label: read.read_contours(folder / "contours", read.Setting(label, target="plane"))
                      for label in LABELS}
    assert [read.file_key(label) for label in ("a PE N=2", "a_b", "a-b", "\u00e9/")] == [
        "a_PE_N=2", "a%5Fb", "a-b", "%C3%A9%2F"]
    (folder / "contours" / "first.json").write_text((folder / "contours" / "plane.json").read_text())
    first, other = read.Setting("first", density=["t", "{}", ""]), read.Setting("x", density=["t", "{}", ""])
    assert read.read_contours(folder / "contours", other, [first, other]) is not None
    assert read.read_contours(folder / "contours", read.Setting("y", density=["t", "{1}", ""]), [first]) is None
    for label, note in (("a HMC", "1 of 3 modes"), ("a PE N=2", "3 of 3 modes")):
        assert panel.mode_note(label, context.draws(label).x[0]) == note


def check_grid():
    """Lists in a [[setting]], and which labels the panels of budgets take for points of one line."""
    table = {"label": "{data} {method} {gradients}", "data": ["a/sys0", "a/sys1.json"], "method": ["st", "pt"],
             "gradients": [100000, 2.5e6]}
    made = grid.combinations(table)
    assert [one["label"] for one in made] == [
        f"{data} {method} {gradients}" for data in ("sys0", "sys1") for method in ("st", "pt")
        for gradients in ("1e5", "2.5e6")]
    assert made[-1]["data"] == "a/sys1.json" and made[-1]["gradients"] == 2.5e6 and made[-1]["sampler"] == "pt"
    made = grid.combinations({"label": "{sampler} {split}", "sampler": "pe", "target_settings": {"split": [1, 2], "dim": 3}})
    assert [(one["label"], one["target_settings"]) for one in made] == [
        ("pe 1", {"split": 1, "dim": 3}), ("pe 2", {"split": 2, "dim": 3})]
    assert grid.combinations({"label": "x", "data": "y"}) == [{"label": "x", "data": "y"}]
    assert [grid.short_number(v) for v in (1, 3e5, 1e7, 123456789)] == ["1e0", "3e5", "1e7", "1.23457e8"]
    for labels, lines, groups in (
            (["s0 st 1e5", "s0 st 1e6", "s1 st 1e5", "s1 st 1e6"], {"st"}, ["s0", "s1"]),
            (["st 1e5", "st 1e6", "pt 1e5", "pt 1e6"], {"st", "pt"}, [""]),
            (["PE N=2 1e5", "PE N=5 1e5"], {"N=2", "N=5"}, ["PE"]),
            (["seeded chains=16", "plain chains=16"], {"seeded", "plain"}, [""])):
        panel = convergence_panel.ConvergencePanel(SimpleNamespace(
            labels=labels, look=style.Labels(labels, {}), study=read.Study("check", "", [], {}, {})))
        assert (set(panel.lines), panel.groups) == (lines, groups), (labels, panel.lines, panel.groups)


def check_pooling(folder):
    """Several systems as one: the root mean square over all of them, with errors smaller than either's."""
    results = read.read_results(folder / "results.csv")
    squares = [accuracy.squared_errors(results, label, ["mean[0]"]) for label in ("a HMC", "b HMC")]
    value, low, high = accuracy.pooled_rmse(squares)
    assert abs(value - np.sqrt(np.concatenate(squares).mean())) < 1e-12 and low < value < high
    assert accuracy.pooled_rmse(squares[:1]) == accuracy.rmse(squares[0])
    results.quantities.append("base_log_z")
    for label in results.labels:
        results.estimate[label]["base_log_z"], results.truth[label]["base_log_z"] = np.array([2.0, 4.0]), 5.0
    panel = convergence_panel.ConvergencePanel(SimpleNamespace(
        labels=results.labels, look=style.Labels(results.labels, {}), study=read.Study("check", "", [], {}, {}),
        results=results))
    assert panel.base_error("log_z") == 5**0.5 and panel.base_error("mean") is None
    assert accuracy.quantities_with_truth(results, [], results.labels) == ["mean[0]", "mean[1]"]
    assert accuracy.quantities_with_truth(results, ["mean"], results.labels) == ["mean[0]", "mean[1]"]


def check_sweep():
    """Of several parameters each has a facet, and a label that lines of both go through stands in both."""
    for labels, facets in (
            (["a x=1", "a x=2", "a y"], {"x": {"a x=1", "a x=2", "a y"}}),
            (["K=1 D=2 a", "K=2 D=2 a", "K=2 D=3 a", "K=2 D=2 b", "K=1 D=3 c"],
             {"K": {"K=1 D=2 a", "K=2 D=2 a", "K=2 D=2 b"}, "D": {"K=2 D=2 a", "K=2 D=3 a", "K=2 D=2 b"}})):
        results = SimpleNamespace()
        look = style.Labels(labels, {})
        panel = sweep_panel.SweepPanel(SimpleNamespace(labels=labels, look=look, results=results,
                                                       study=read.Study("check", "", [], {}, {})))
        panel.values = {label: dict(sweep_panel.PARAMETER.findall(look.name_of[label])) for label in labels}
        panel.parameters = list(dict.fromkeys(name for values in panel.values.values() for name in values))
        panel.name_of = {label: sweep_panel.PARAMETER.sub("", look.name_of[label]).strip() for label in labels}
        groups = look.groups
        assert {p: {label for g in groups for label in panel.members(g, p)} for p in panel.parameters} == facets


def check_sandwich(folder):
    """Which labels are points of which line, and means with two standard errors, of the bounds where there are any."""
    study = read.Study("check", "", [], {}, {})
    for labels, lines, groups in (
            (["ais K=50", "ais K=100", "st K=50", "st K=100"], ["ais", "st"], {""}),
            (["x ais K=50", "x ais K=100", "y ais K=50", "y st"], ["ais", "st"], {"x", "y"})):
        panel = sandwich_panel.SandwichPanel(
            SimpleNamespace(labels=labels, look=style.Labels(labels, {}), study=study))
        assert (panel.lines, set(panel.group_of.values())) == (lines, groups), (labels, panel.lines)
    context = plot_study.Context(folder, study)
    panel = sandwich_panel.SandwichPanel(context)
    assert panel.prepare() is None and list(panel.facets) == ["a", "b"]
    values = context.results.estimate["a HMC"]["log_z"]
    mean, error = values.mean(), values.std(ddof=1) / len(values) ** 0.5
    for points, shift in ((panel.facets["a"]["HMC"], -1), (panel.upper["a", "HMC"], 1)):
        assert np.allclose(points, [(100, mean + shift, mean + shift - 2 * error, mean + shift + 2 * error)])
    assert panel.facets["a"]["PE N=2"] and not panel.upper["a", "PE N=2"]


def check_kinds(plane, bare):
    """Kinds that are said to show draws, and no others, have nothing to show without them; the text names all keys."""
    bare.mkdir()
    for name in ("results.csv", "timings.csv"):
        shutil.copy(plane / name, bare)
    context = plot_study.Context(bare, read.Study("check", "", [], {}, {}))
    for kind, (panel, needs) in lists.pictures_in("kinds.list").items():
        assert needs in ("", "draws") and bool(panel(context).prepare()) == (needs == "draws"), kind
    for key in plot_table.PLOT_KEYS:
        assert f" {key} = " in plot_study.__doc__, key


def check_pictures(plane, line):
    for kind, folder in [*((kind, plane) for kind in plot_study.KINDS), ("density", line)]:
        status, said = run_script(folder, f'kind = "{kind}"\ncount_modes = true')
        assert (status, said) == (0, ""), (kind, status, said)
        png, svg = pictures(folder)
        width = int.from_bytes(png[16:20], "big")
        assert png.startswith(b"\x89PNG") and width == 1600 and svg.rstrip().endswith(b"</svg>"), kind
    plot = 'panels = ["rmse", "scatter", "beta"]\ngroups = { a = "Near", b = "Far" }'
    run_script(plane, plot)
    first = pictures(plane)
    assert run_script(plane, plot)[0] == 0 and pictures(plane) == first, "two runs gave different bytes"


def check_items(folder):
    """Evidence of many items: with and without reverse runs, images and vectors, and bad input."""
    header = ("item", *plot_items.NUMBERS)
    for num_items, shape, upper in ((3, (4, 4), (-0.5, 0.1, 1.5)), (150, (1, 30), ("", "", ""))):
        folder.mkdir(exist_ok=True)
        write_csv(folder / "items.csv", header, [[item, -item, 0.1, -item - 1, 0.1, *upper, 1 + item % 9, 5]
                                                 for item in range(num_items)])
        np.save(folder / "images.npy", np.eye(num_items * shape[0], shape[1], dtype=np.uint8).reshape(-1, *shape))
        with contextlib.redirect_stdout(io.StringIO()):
            assert plot_items.main([str(folder)]) == 0
        assert (folder / "items.png").read_bytes().startswith(b"\x89PNG") and (folder / "items.svg").exists()
    items = plot_items.read_items(folder / "items.csv")
    assert items.index[0] == 149 and items.marked().sum() == 17 and not items.bounded().any()
    np.save(folder / "images.npy", np.zeros((149, 4, 4), np.uint8))
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        assert plot_items.main([str(folder)]) == 2 and said.getvalue().count("\n") == 1


def check_missing(plane):
    """Panels without their input are left out, each with a line; without any panel the status is 1."""
    status, said = run_script(plane, 'panels = ["rmse", "density"]\nlabels = ["none"]')
    assert status == 0 and said.count("\n") == 1 and "density" in said, said
    (plane / "timings.csv").unlink()
    status, said = run_script(plane, 'kind = "cost"')
    assert status == 1 and "timings.csv" in said.splitlines()[0], said
    assert run_script(plane, 'kind = "cost"\ncost = "gradients"') == (0, "")


def check_bad_input(plane):
    """One clear line and status 2."""
    good = (plane / "results.csv").read_text(encoding="utf-8")
    lines = good.splitlines(keepends=True)
    bad_results = ("", lines[0], good.replace("estimate", "guess"), good + "a HMC,9,mean[0],x,1,0,1,1\n",
                   good + lines[-1], good + "a HMC,9\n")
    for text in bad_results:
        (plane / "results.csv").write_text(text, encoding="utf-8")
        status, said = run_script(plane, 'kind = "rmse"')
        assert status == 2 and said.count("\n") == 1 and "results.csv" in said, (text[-60:], said)
    (plane / "results.csv").write_text(good, encoding="utf-8")
    for plot in ('kind = "rmsee"', 'knid = "rmse"', "columns = 0", 'cost = "euros"', 'against = "time"',
                 "dims = [0]", "kind = 3", "="):
        status, said = run_script(plane, plot)
        assert status == 2 and said.count("\n") == 1, (plot, said)
    assert not list(plane.glob(".*")), "a temporary file was left behind"


def run():
    """Exit status 0, or an assertion that says what is wrong."""
    with tempfile.TemporaryDirectory() as name:
        plane, line = Path(name) / "plane", Path(name) / "line"
        write_inputs(plane, 2)
        write_inputs(line, 1)
        check_grid()
        check_sweep()
        check_numbers(plane)
        check_pooling(plane)
        check_sandwich(plane)
        check_kinds(plane, Path(name) / "bare")
        check_pictures(plane, line)
        check_items(Path(name) / "items")
        run_check.check(Path(name) / "run")
        check_missing(plane)
        check_bad_input(plane)
    print("every kind of picture was drawn")


if __name__ == "__main__":
    run()
