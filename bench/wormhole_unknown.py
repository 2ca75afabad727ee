#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Modes that searches find from four random optimisations, on -log density and on the energies of Lan, Streets & Shahbaba (2014).

    wormhole_unknown.py run LOCKSTEP results.csv [KEY=VALUE ..]     calls LOCKSTEP modes on target scattered
    wormhole_unknown.py table results.csv [picture.png]            modes found against gradients

Keys of run: dims=10,40,100 modes=10 seeds=10 gradients=2e3,4e3,8e3,1.6e4,3.2e4,1e5 (what a search may spend)
searches=none,log,difference (search.residual). A seed is that of the target's means and of the search.
The table has means over the seeds with their standard errors, in how many seeds all modes were found, and the difference to
the first search, seed by seed. Gradients are those that were taken, weighing what was found included.
"""
import csv
import json
import math
import subprocess
import sys
from collections import defaultdict

STANDARD = {"dims": "10,40,100", "modes": "10", "seeds": "10", "gradients": "2e3,4e3,8e3,1.6e4,3.2e4,1e5",
            "searches": "none,log,difference"}
COLUMNS = ["dim", "modes", "search", "budget", "seed", "found", "starts", "ended", "gradients"]
SEARCH_SHARE = 0.25  # of a run's gradients


def search_once(program, dim, modes, search, budget, seed):
    """[found, starts, ended, gradients] of a search that begins with four descents."""
    sets = {"target.dim": dim, "target.modes": modes, "target.seed": seed, "search.starts": 4, "search.residual": search}
    command = [program, "modes", "--target", "scattered", "--seed", str(seed), "--gradients", repr(budget / SEARCH_SHARE),
               "--json", "--quiet"]
    for key, value in sets.items():
        command += ["--set", f"{key}={value}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"{program} cannot be run: {error.strerror}. Give the path of lockstep.")
    if done.returncode != 0:
        sys.exit(done.stderr.strip() or f"{program} ended with status {done.returncode}")
    answer = json.loads(done.stdout)
    return [len(answer["modes"])] + [answer["search"][key] for key in ("starts", "ended", "gradients")]


def keys_of(given):
    keys = dict(STANDARD)
    for text in given:
        key, _, value = text.partition("=")
        if key not in keys or not value:
            sys.exit(f"{text} is no KEY=VALUE of {', '.join(keys)} (it says what to run). Correct it.")
        keys[key] = value
    kinds = {"dims": int, "modes": int, "seeds": int, "gradients": float, "searches": str}
    for key, kind in kinds.items():
        try:
            keys[key] = [kind(part) for part in keys[key].split(",")]
        except ValueError:
            sys.exit(f"{key}={keys[key]} is no list of {'whole ' if kind is int else ''}numbers (parted by commas). Correct it.")
    for key in ("modes", "seeds"):
        if len(keys[key]) > 1 or keys[key][0] < 1:
            sys.exit(f"{key} is one number, from 1. Correct it.")
    return keys


def run(program, path, given):
    keys = keys_of(given)
    modes, file = keys["modes"][0], None
    for dim in keys["dims"]:
        for budget in keys["gradients"]:
            for search in keys["searches"]:
                for seed in range(1, keys["seeds"][0] + 1):
                    found = search_once(program, dim, modes, search, budget, seed)
                    if file is None:  # not before a search has been taken
                        file = open(path, "w", newline="", encoding="utf-8")
                        writer = csv.writer(file)
                        writer.writerow(COLUMNS)
                    writer.writerow([dim, modes, search, f"{budget:g}", seed] + found)
                file.flush()


def mean_and_error(values):
    """Of independent numbers; the error of a single one is not known."""
    n, mean = len(values), sum(values) / len(values)
    return mean, math.sqrt(sum((v - mean)**2 for v in values) / (n - 1) / n) if n > 1 else math.nan


def read(path):
    """{dim: {search: {budget: {seed: row}}}}"""
    found = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found[int(row["dim"])][row["search"]][float(row["budget"])][row["seed"]] = row
    if not found:
        sys.exit(f"{path} has no rows (a search is one each). Make it with run.")
    return found


def table(path, picture=None):
    found = read(path)
    print("| D | residual | may spend | gradients | starts | rested | modes found | all found | minus first |")
    print("|---|---|---|---|---|---|---|---|---|")
    for dim, searches in found.items():
        first = next(iter(searches.values()))
        for search, budgets in searches.items():
            for budget, seeds in budgets.items():
                of = lambda key: mean_and_error([float(row[key]) for row in seeds.values()])
                all_found = sum(int(row["found"]) >= int(row["modes"]) for row in seeds.values())
                both = [(row, first[budget][seed]) for seed, row in seeds.items() if seed in first[budget]]
                less = mean_and_error([int(a["found"]) - int(b["found"]) for a, b in both]) if both else (math.nan, math.nan)
                beside = "" if budgets is first else f"{less[0]:+.1f} +- {less[1]:.1f}"
                print(f"| {dim} | {search} | {budget:g} | {of('gradients')[0]:.0f} | {of('starts')[0]:.0f} | "
                      f"{of('ended')[0]:.0f} | {of('found')[0]:.1f} +- {of('found')[1]:.1f} | {all_found} of {len(seeds)} | "
                      f"{beside} |")
    if picture:
        draw(found, picture)


def draw(found, picture):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    figure, axes = plt.subplots(1, len(found), figsize=(1 + 3.5 * len(found), 3.5), squeeze=False, sharey=True,
                                layout="constrained")
    for ax, (dim, searches) in zip(axes[0], found.items()):
        for k, (search, budgets) in enumerate(searches.items()):
            points = []
            for seeds in budgets.values():
                mean, error = mean_and_error([int(row["found"]) for row in seeds.values()])
                points.append((mean_and_error([float(row["gradients"]) for row in seeds.values()])[0], mean, error))
            label = "more starts" if search == "none" else f"residual energy, {search}"
            style = {"lw": 4, "alpha": 0.5, "ms": 8} if k == 0 else {"lw": 1.5, "ms": 4}  # lines lie on each other
            ax.errorbar(*zip(*points), marker="o", capsize=2, color=f"C{k}", label=label, **style)
        ax.set(title=f"D = {dim}", xlabel="gradients", xscale="log")
    axes[0][0].set(ylabel="modes found, mean of seeds", ylim=(0, None))
    axes[0][0].legend()
    figure.savefig(picture, dpi=150)


def main():
    if len(sys.argv) >= 4 and sys.argv[1] == "run":
        run(sys.argv[2], sys.argv[3], sys.argv[4:])
    elif len(sys.argv) in (3, 4) and sys.argv[1] == "table":
        table(*sys.argv[2:4])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main()
    except ModuleNotFoundError as error:
        sys.exit(f"The Python module {error.name} is not there (it draws). Install it.")
