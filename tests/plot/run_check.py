# SPDX-License-Identifier: Apache-2.0
"""Test of plot_run.py: made-up runs, every picture of theirs, and what has none."""
import contextlib
import copy
import io
import json

import netCDF4
import numpy as np
from matplotlib.image import imread

import chain_pictures
import gates
import plot_modes
import plot_run
import read
import run_input

NAMES = ["mu", "log tau", "a & b"]
SAMPLE = {
    "command": "sample", "verdict": "fail", "failed_gates": ["rhat", "mystery"], "warnings": ["<beware>"], "seed": 1,
    "target": {"name": "made-up", "dim": 3, "settings": {}}, "sampler": {"name": "hmc", "settings": {}},
    "chains": 64, "iterations": 1000, "cost": {"gradients": 1e6, "wall_s": 1.5},
    "estimates": {"mean": [0, 0, 0], "mean_se": [0.1, 0.1, 0.1], "second_moment": [1, 1, 1],
                  "second_moment_se": [0.1, 0.1, 0.1], "quantiles": {"5%": [-2, -2, -2], "95%": [2, 2, 2.125]},
                  "quantities": {"share": 0.25}, "quantities_se": {"share": 0.01}},
    "truth": {"mean": [0, 0, 0], "second_moment": [1, 1, 1], "quantities": {"share": 0.3}},
    "diagnostics": {"acceptance": 0.8, "divergences": 3, "rhat_max": 1.2, "weight_ess": 900, "rhat": [1, 1, 1.2],
                    "modes": {"found": 2, "stopped": "hits", "narrowest": 0.875, "shares": [{"place": [1, 2, 3], "share": 0.625, "expected": 0.6}]}}}
EVIDENCE = {
    **SAMPLE, "command": "evidence", "verdict": "pass", "failed_gates": [], "warnings": [],
    "log_z": {"estimate": 1.0, "se": 0.1, "lower": 0.5, "upper": 1.5}, "truth": {"log_z": 1.1},
    "items": [{"log_z": {"estimate": 0.9}}, {"log_z": {"estimate": 1.2}}],
    "diagnostics": {"acceptance": 0.8, "schedule": [0, 0.001, 0.1, 1], "rejection": [0.2, 0.3, 0.1], "barrier": 0.6,
                    "round_trips": 640, "least_round_trips": 8, "bridge": {"estimate": 1.0, "se": 0.1},
                    "mbar": {"estimate": 1.4, "se": 0.1},
                    "drift": {"estimate": 0.1, "se": 0.2}}}
OF_DRAWS = ["marginals", "corner", "trace", "rank", "energy"]
OF_EVIDENCE = ["log_z", "schedule", "round_trips"]


def write_draws(path, x, stats, names=None, **attributes):
    """As lockstep does; stats: name -> [chain][draw], of which `share` is a quantity of the target."""
    with netCDF4.Dataset(path, "w") as data:
        data.setncatts(attributes)
        groups = {name: data.createGroup(name) for name in ("posterior", "sample_stats")}
        for group in groups.values():
            for name, size in zip(("chain", "draw", "x_dim_0"), x.shape):
                group.createDimension(name, size)
        groups["posterior"].createVariable("x", "f4", ("chain", "draw", "x_dim_0"))[:] = x
        if names:
            groups["posterior"].createVariable("x_dim_0", str, ("x_dim_0",))[:] = np.array(names, dtype=object)
        for name, values in stats.items():
            group = groups["posterior" if name == "share" else "sample_stats"]
            group.createVariable(name, values.dtype, ("chain", "draw"))[:] = values


def made_up(num_chains, num_draws, dim, seed=3):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(num_chains, num_draws, dim))
    energy = 0.5 * np.square(x).sum(axis=2) + generator.chisquare(dim, size=x.shape[:2]) / 2
    return x, {"lp": -0.5 * np.square(x).sum(axis=2), "energy": energy, "share": (x[:, :, 0] > 0).astype(float),
               "diverging": (x[:, :, 0] > 1.5).astype("i1")}


def draw(folder, summary, draws=None):
    """(exit status, pictures made, the page, what it said)."""
    folder.mkdir(exist_ok=True)
    for older in [*folder.glob("*.png"), *folder.glob("*.html"), *folder.glob("*.nc")]:
        older.unlink()
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    arguments = ["--summary", str(folder / "summary.json"), "--out", str(folder)]
    if draws is not None:
        write_draws(folder / "draws.nc", **draws)
        arguments += ["--draws", str(folder / "draws.nc")]
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        status = plot_run.main(arguments)
    page = folder / "report.html"
    assert not list(folder.glob(".*")), "a temporary file was left behind"
    return status, {path.stem for path in folder.glob("*.png")}, page.read_text() if page.exists() else "", \
        said.getvalue()


def check_pictures(folder, names):
    """Each is a picture of the right width, with something in it, and no axes are empty."""
    run = run_input.read_run(folder / "summary.json", folder / "draws.nc" if (folder / "draws.nc").exists() else None)
    for name in names:
        pixels = imread(folder / f"{name}.png")[:, :, :3]
        assert pixels.shape[1] == 1600 and (pixels.min(axis=2) < 0.8).mean() > 0.005, name
        figure, caption = plot_run.PICTURES[name][0](run)
        assert caption and all(ax.has_data() for ax in figure.axes if ax.axison), name


def check_every_picture(folder):
    x, stats = made_up(4, 250, 3)
    status, made, page, said = draw(folder, SAMPLE, {"x": x, "stats": stats, "names": NAMES})
    assert (status, made, said) == (0, set(OF_DRAWS), ""), (status, made, said)
    check_pictures(folder, OF_DRAWS)
    assert page.count("<img ") == len(OF_DRAWS) and page.count("data:image/png;base64,iVBOR") == len(OF_DRAWS)
    for part in ("a &amp; b", "&lt;beware&gt;", "failed", "mystery", "0.250 ± 0.010", "4 of the 64 chains",
                 "--sampler pe", "true mean", "95 %", "2.125", "R-hat", "narrower than 0.88 times", "0.625", "1, 2, 3"):
        assert part in page, part
    assert "http" not in page, "the page needs the network"
    status, made, page, said = draw(folder, EVIDENCE)
    assert (status, made, said) == (0, set(OF_EVIDENCE), ""), (status, made, said)
    check_pictures(folder, OF_EVIDENCE)
    assert "10 a chain" in page and "at least 8 a chain" in page and "lower bound" in page
    assert "failed" not in page.split("</style>")[1] and "serve swaps best" in page
    tempered = copy.deepcopy(EVIDENCE)
    del tempered["diagnostics"]["rejection"]
    page = draw(folder, tempered)[2]
    assert "serve moves of β best" in page and "swap" not in page


def check_what_there_is(folder):
    """Panels that have nothing to show are left out, and nothing else."""
    def made(draws, summary=SAMPLE):
        status, names, page, said = draw(folder, summary, draws)
        assert status == 0 and said == "" and page.count("<img ") == len(names), (status, said)
        return names
    x, stats = made_up(4, 250, 2)
    assert made({"x": x, "stats": {}}) == {"marginals", "corner", "trace", "rank"}
    assert made({"x": x[:1], "stats": {}}) == {"marginals", "corner", "trace"}
    assert made({"x": x[:, :, :1], "stats": {}}) == {"marginals", "trace", "rank"}
    assert made({"x": x[:, :30], "stats": {}}) == {"marginals", "corner", "trace"}
    assert made({"x": x, "stats": {}, "resampled": "yes"}) == {"marginals", "corner", "rank"}
    check_pictures(folder, ["marginals", "rank"])
    made({"x": x, "stats": {}, "chains_kept": [0, 21, 42, 63]})
    assert run_input.read_draws(folder / "draws.nc").chains == [0, 21, 42, 63]
    assert "energy" not in made({"x": x, "stats": stats, "thin": 2})
    for nothing in (np.full_like(x, np.nan), np.ones_like(x), x[:, :0]):
        assert made({"x": nothing, "stats": {}}) == set()
    assert made(None) == set()
    short = copy.deepcopy(SAMPLE)
    del short["truth"], short["estimates"], short["diagnostics"]["rhat_max"]
    assert made(None, short) == set()
    many, stats = made_up(40, 100, 12)
    assert made({"x": many, "stats": stats}) == set(OF_DRAWS)
    assert run_input.read_draws(folder / "draws.nc").x.shape == (40, 100, 10)


def check_numbers():
    """Ranks and E-BFMI against plain loops; the states of gates."""
    values = np.random.default_rng(1).integers(0, 9, size=(3, 7)).astype(float)
    plain = [[(np.sum(values < v) + (np.sum(values == v) - 1) / 2 + 0.5) / values.size for v in row] for row in values]
    assert np.allclose(chain_pictures.ranks(values), plain)
    energy = np.random.default_rng(2).normal(size=(2, 50))
    plain = [sum((a - b) ** 2 for a, b in zip(row[1:], row)) / 49 / np.var(row) for row in energy]
    assert np.allclose(chain_pictures.bayesian_fraction(energy), plain)
    state = {gate.name: gate.state for gate in gates.gates_of(run_input.Run(SAMPLE, None))}
    assert state == {"rhat": "failed", "mystery": "failed", "length": "passed", "modes": "passed", "acceptance": "passed",
                     "divergences": "passed", "weight_ess": "passed"}, state
    unsettled = run_input.Run({**SAMPLE, "verdict": "not established", "failed_gates": ["rhat"]}, None)
    assert gates.gates_of(unsettled)[0].state == "not established"
    found = {gate.name: gate.found for gate in gates.gates_of(run_input.Run(EVIDENCE, None))}
    assert found["estimators_disagree"].startswith("bridge and mbar 0.4 nats apart, 4.0") and "rhat" not in found, found
    both_ways = copy.deepcopy(EVIDENCE)
    both_ways["diagnostics"]["bennett"] = {"estimate": 1.0 + 5 * np.hypot(0.1, 0.1), "se": 0.1}
    found = {gate.name: gate.found for gate in gates.gates_of(run_input.Run(both_ways, None))}
    assert found["estimators_disagree"].endswith("5.0 standard errors"), found


def check_modes(folder):
    """Pictures of libraries of modes; what is none is refused."""
    folder.mkdir(exist_ok=True)
    for dim in (1, 3):
        modes = [{"place": [4.0 * k] * dim, "covariance": (np.eye(dim) * (1 + k)).tolist(), "share": 0.25 * (k + 1),
                  "log_density": -1.0 - k, "laplace_log_mass": -float(k), "hits": 10} for k in range(2)]
        library = {"target": {"name": "made-up", "parameters": NAMES[:dim]}, "search": {"starts": 99}, "modes": modes}
        (folder / "modes.json").write_text(json.dumps(library), encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()):
            assert plot_modes.main(["--modes", str(folder / "modes.json"), "--out", str(folder)]) == 0
        pixels = imread(folder / "modes.png")[:, :, :3]
        assert pixels.shape[1] == 1600 and (pixels.min(axis=2) < 0.8).mean() > 0.005, dim
    for text in ("{", "[]", '{"modes": []}', '{"modes": [{"place": [1]}]}'):
        (folder / "modes.json").write_text(text, encoding="utf-8")
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            assert plot_modes.main(["--modes", str(folder / "modes.json"), "--out", str(folder)]) == 2, text
        assert said.getvalue().count("\n") == 1, said.getvalue()


def check_bad_input(folder):
    """One clear line and status 2."""
    x, stats = made_up(2, 50, 2)
    draw(folder, SAMPLE, {"x": x, "stats": stats})
    for name, text in (("draws.nc", "x"), ("summary.json", "{"), ("summary.json", "[]"), ("summary.json", "{}")):
        (folder / name).write_text(text)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            status = plot_run.main(["--summary", str(folder / "summary.json"), "--draws", str(folder / "draws.nc"),
                                    "--out", str(folder)])
        assert status == 2 and said.getvalue().count("\n") == 1 and name in said.getvalue(), said.getvalue()


def check(folder):
    check_every_picture(folder)
    check_what_there_is(folder)
    check_numbers()
    check_bad_input(folder)
    check_modes(folder.parent / "modes")
    write_draws(folder / "plane.nc", made_up(2, 5, 2)[0], {}, ["a", "b"], chains_of_replicate=64)
    plane = read.read_draws(folder / "plane.nc")
    assert (plane.names, plane.num_chains) == (["a", "b"], 64)
