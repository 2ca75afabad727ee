#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each mode of a sensor network's posterior holds, by methods that share neither library nor base.

    sensor_shares.py modes.json RUN RUN .. -- RUN RUN ..

modes.json of `lockstep modes --target sensors --data sensors.json --out DIR`; each RUN a folder of `sample` or `evidence` with
draws.nc, those before `--` by one method and those after it by another, each with a seed of its own. A draw counts for the
mode whose normal is densest there, all of one mass. Errors are those of the means over the runs of a method.
"""
import json
import sys
from pathlib import Path

try:
    import netCDF4
    import numpy as np
except ModuleNotFoundError as missing:
    sys.exit(f"The Python module {missing.name} is not there. Install it.")

LEAST = 0.01


def draws_of(folder):
    """Unweighted draws [draw][axis] of a run's draws.nc."""
    with netCDF4.Dataset(Path(folder) / "draws.nc") as file:
        x = np.asarray(file["posterior"]["x"][:], float)
    return x.reshape(-1, x.shape[-1])


def shares(modes, x):
    """Of the draws x: how many each mode has."""
    best = np.full(len(x), -np.inf)
    home = np.zeros(len(x), int)
    for k, (place, whiten, log_det) in enumerate(modes):
        z = (x - place) @ whiten.T
        density = -0.5 * (z * z).sum(1) - log_det
        nearer = density > best
        best[nearer], home[nearer] = density[nearer], k
    return np.bincount(home, minlength=len(modes)) / len(x)


def read_modes(path):
    """(place, inverse of the factor, log of its determinant) of each."""
    found = []
    for mode in json.loads(Path(path).read_text(encoding="utf-8"))["modes"]:
        covariance = np.asarray(mode["covariance"], float)
        factor = np.linalg.cholesky(covariance)
        found.append((np.asarray(mode["place"], float), np.linalg.inv(factor), np.log(np.diag(factor)).sum()))
    return found


def main():
    if "--" not in sys.argv[3:] or sys.argv[-1] == "--":
        sys.exit(__doc__)
    modes, split = read_modes(sys.argv[1]), sys.argv.index("--")
    by_method = []
    for folders in (sys.argv[2:split], sys.argv[split + 1:]):
        each = np.array([shares(modes, draws_of(f)) for f in folders])
        by_method.append((each.mean(0), each.std(0, ddof=1) / np.sqrt(len(each))))
    (one, one_se), (other, other_se) = by_method
    print("| mode at | first method | second method | z |\n|---|---|---|---|")
    worst = 0
    for k in np.argsort(-one):
        if max(one[k], other[k]) < LEAST:
            continue
        z = (one[k] - other[k]) / np.hypot(one_se[k], other_se[k])
        worst = max(worst, abs(z))
        place = " ".join(f"{v:.3f}" for v in modes[k][0][:4])
        print(f"| {place} .. | {one[k]:.4f} +- {one_se[k]:.4f} | {other[k]:.4f} +- {other_se[k]:.4f} | {z:.2f} |")
    print(f"\nlargest |z| {worst:.2f}")


if __name__ == "__main__":
    main()
