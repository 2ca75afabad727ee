#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Results of the horseshoe regressions (bench/studies/horseshoe.toml).

    horseshoe.py table results.csv [picture.png]      held-out log predictive density, sampler beside sampler
    horseshoe.py coefficients PICTURE RUN [RUN ..]    densities of the most bimodal coefficients; RUN has draws.nc

The log predictive density of a run is the mean over the cases held out of log E p(y | x); means and standard errors are
over replicates. A difference is that of each split, averaged over splits, since both samplers saw the same ones; its
standard error is the larger of that from the replicates and of that from the scatter of the splits' differences.
"""
import csv
import json
import math
import re
import sys
from collections import defaultdict
from pathlib import Path

try:
    import numpy as np
except ModuleNotFoundError:
    sys.exit("The Python module numpy is not there. Install it, and for pictures matplotlib and netCDF4.")

LABEL = re.compile(r"(?P<data>\S+) split=(?P<split>\S+) (?P<sampler>.+)")


def mean_and_error(values):
    """Of independent numbers; the error of a single one is not known."""
    values = np.asarray(values, float)
    return values.mean(), values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def predictive_densities(rows):
    """{data: {sampler: {split: [of each replicate]}}} from rows of results.csv."""
    logs = defaultdict(list)
    for row in rows:
        if row["quantity"].startswith("held_out["):
            logs[row["label"], row["replicate"]].append(math.log(float(row["estimate"])))
    found = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for (label, _), terms in logs.items():
        parts = LABEL.fullmatch(label)
        if parts is None:
            sys.exit(f"the label '{label}' is not DATA split=NUMBER SAMPLER (it tells splits apart). Rename the setting.")
        found[parts["data"]][parts["sampler"]][parts["split"]].append(np.mean(terms))
    return found


def difference(of_one, of_other):
    """Mean over the splits that both have, its errors by replicates and by splits."""
    splits = sorted(set(of_one) & set(of_other))
    each = [(mean_and_error(of_one[s]), mean_and_error(of_other[s])) for s in splits]
    d = [a[0] - b[0] for a, b in each]
    by_runs = math.sqrt(sum(a[1]**2 + b[1]**2 for a, b in each)) / len(splits) if splits else math.nan
    return np.mean(d) if d else math.nan, by_runs, mean_and_error(d)[1] if len(d) > 1 else math.nan, len(splits)


def table(path, picture=None):
    with open(path, newline="", encoding="utf-8") as file:
        found = predictive_densities(csv.DictReader(file))
    if not found:
        sys.exit(f"{path} has no row held_out[..] (they are what is predicted). Give the results.csv of a study of horseshoe.")
    print("| data | sampler | splits | log predictive density a case | error | minus first | error, runs | error, splits | z |")
    print("|---|---|---|---|---|---|---|---|---|")
    for data, samplers in found.items():
        first = next(iter(samplers))
        for name, splits in samplers.items():
            value = np.mean([np.mean(v) for v in splits.values()])
            error = math.sqrt(sum(mean_and_error(v)[1]**2 for v in splits.values())) / len(splits)
            line = f"| {data} | {name} | {len(splits)} | {value:.4f} | {error:.4f} "
            if name != first:
                d, by_runs, by_splits, _ = difference(splits, samplers[first])
                z = d / np.nanmax([by_runs, by_splits])
                line += f"| {d:+.4f} | {by_runs:.4f} | {by_splits:.4f} | {z:+.2f} |"
            else:
                line += "| | | | |"
            print(line)
    if picture:
        draw_table(found, picture)


def draw_table(found, picture):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    figure, axes = plt.subplots(2, len(found), figsize=(1 + 3.5 * len(found), 6), squeeze=False, layout="constrained",
                                sharex="col")
    for (above, below), (data, samplers) in zip(axes.T, found.items()):
        first = next(iter(samplers.values()))
        everywhere = sorted({split for splits in samplers.values() for split in splits}, key=lambda s: (len(s), s))
        for k, (name, splits) in enumerate(samplers.items()):
            for i, split in enumerate(everywhere):
                values = np.asarray(splits.get(split, []))
                x = np.full(len(values), i + 0.15 * (k - (len(samplers) - 1) / 2))
                style = {"marker": "o", "ls": "none", "color": f"C{k}", "ms": 4, "alpha": 0.7}
                above.plot(x, values, label=name if i == 0 else None, **style)
                if split in first:
                    below.plot(x, values - np.mean(first[split]), **style)
        above.set(title=data, ylabel="log predictive density a case")
        below.set(xlabel="split", ylabel=f"minus the mean of {next(iter(samplers))}")
        below.axhline(0, color="0.7", lw=0.8, zorder=0)
        below.set_xticks(range(len(everywhere)), everywhere)
        above.legend()
    figure.savefig(picture, dpi=150)


def coefficients_of(x, scale):
    """[draw][feature]: b_j = z_j tau c lambda_j / sqrt(c^2 + tau^2 lambda_j^2), from the states [draw][row]."""
    p = (x.shape[1] - 3) // 2
    log_c = np.log(scale) + 0.5 * x[:, 2:3]
    r = x[:, 1:2] + x[:, 3 + p:]
    return x[:, 3:3 + p] * np.exp(np.minimum(r, log_c)) / np.sqrt(1 + np.exp(-2 * np.abs(r - log_c)))


def read_run(folder):
    """(sampler, coefficients of its draws [draw][feature], chains)."""
    import netCDF4
    with open(Path(folder) / "summary.json", encoding="utf-8") as file:
        target = json.load(file)["target"]
    with netCDF4.Dataset(Path(folder) / "draws.nc") as data:
        x = np.asarray(data.groups["posterior"].variables["x"][:], float)
        sampler = data.groups["posterior"].sampler
    chains, x = len(x), x.reshape(-1, x.shape[-1])
    return sampler, coefficients_of(x, float(target.get("settings", {}).get("slab_scale", 2))), chains


def bimodality(b):
    """Of each coefficient: p (1 - p), p the share of draws beyond .5 in size: largest where half of them are."""
    p = (np.abs(b) > 0.5).mean(axis=0)
    return p * (1 - p)


def share_beyond(b, chains):
    """Share of draws beyond .5 in size, with its standard error over chains."""
    value, error = mean_and_error((np.abs(b) > 0.5).reshape(chains, -1).mean(axis=1))
    return f"{value:.3f} +- {error:.3f}"


def coefficients(picture, folders, shown=6):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    runs = [read_run(folder) for folder in folders]
    chosen = np.argsort(-sum(bimodality(b) for _, b, _ in runs))[:shown]
    figure, axes = plt.subplots(2, (shown + 1) // 2, figsize=(10, 5), layout="constrained")
    for ax, j in zip(axes.flat, chosen):
        values = np.concatenate([b[:, j] for _, b, _ in runs])
        bins = np.linspace(*np.quantile(values, [0.002, 0.998]), 60)
        for name, b, _ in runs:
            ax.hist(b[:, j], bins, density=True, histtype="step", label=name)
        ax.set(title=f"coefficient {j}", yscale="log")
    figure.supylabel("density")
    axes.flat[0].legend(loc="center", bbox_to_anchor=(0.35, 0.75))
    figure.savefig(picture, dpi=150)
    for j in chosen:
        print(f"coefficient {j}: share beyond 0.5 " +
              ", ".join(f"{name} {share_beyond(b[:, j], chains)}" for name, b, chains in runs))


def main():
    if len(sys.argv) >= 3 and sys.argv[1] == "table":
        table(*sys.argv[2:4])
    elif len(sys.argv) >= 4 and sys.argv[1] == "coefficients":
        coefficients(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main()
    except ModuleNotFoundError as error:
        sys.exit(f"The Python module {error.name} is not there (it draws, or reads draws). Install it.")
