# SPDX-License-Identifier: Apache-2.0
"""Reads what one run left behind: summary.json and, where there is one, a file of draws."""
import json
from dataclasses import dataclass, field

import netCDF4
import numpy as np

from plot_table import PlotError
from read import names_in

MAX_PARAMETERS = 10  # that are shown
MAX_DRAWS = 1_000_000  # of a parameter that are read; of more, fewer chains


@dataclass
class Draws:
    """Unweighted draws of the shown parameters: x [chain][draw][parameter], with their names."""

    x: np.ndarray
    names: list
    num_axes: int  # how many of them are axes of the target; quantities follow
    num_chains: int  # that the file holds
    chains: list  # the number in the run of each of x's
    stats: dict = field(default_factory=dict)  # name -> [chain][draw]
    resampled: bool = False  # drawn by weight from the states of other levels: in no order of time
    thin: int = 1

    def pooled(self, parameter):
        """All draws of a parameter that are finite."""
        values = self.x[:, :, parameter].ravel()
        return values[np.isfinite(values)]


@dataclass
class Run:
    summary: dict
    draws: Draws | None

    def get(self, *path):
        """summary[path[0]][path[1]]..., or None."""
        value = self.summary
        for key in path:
            if not isinstance(value, (dict, list)) or (isinstance(value, dict) and key not in value):
                return None
            value = value[key]
        return value

    @property
    def dim(self):
        return int(self.get("target", "dim"))

    def names(self):
        """Of all axes: the target's, else the draws', else x[i]."""
        given = self.get("target", "parameters") or []
        if len(given) == self.dim:
            return [str(name) for name in given]
        known = self.draws.names[:self.draws.num_axes] if self.draws else []
        return known + [f"x[{i}]" for i in range(len(known), self.dim)]


def read_summary(path):
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PlotError(f"cannot read {path} ({error.strerror}). Give the summary of a run.") from None
    except ValueError as error:
        raise PlotError(f"{path} is not JSON ({error}). Run it again, or restore the file.") from None
    needed = ("command", "verdict", "failed_gates", "warnings", "target", "sampler", "cost", "diagnostics")
    missing = [key for key in needed if not isinstance(summary, dict) or key not in summary]
    if missing:
        raise PlotError(f"{path} holds no {', '.join(missing)} (it is not the summary of a run). Run it again.")
    return summary


def read_draws(path):
    """The first parameters of a draws file; None where it holds no draw."""
    try:
        with netCDF4.Dataset(path) as data:
            data.set_auto_mask(False)
            return draws_in(data)
    except (OSError, IndexError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise PlotError(f"cannot read the draws in {path} ({reason}). Run it again, or restore the file.") from None


def draws_in(data):
    posterior = data["posterior"]
    x = posterior["x"]
    num_chains, num_draws, dim = x.shape
    if min(x.shape) == 0:
        return None
    shown = min(dim, MAX_PARAMETERS)
    chains = spread(num_chains, max(1, MAX_DRAWS // num_draws))
    few = slice(0, MAX_DRAWS)

    def read(variable, *more):
        return np.stack([np.asarray(variable[(int(c), few, *more)], dtype=float) for c in chains])
    values, names = [read(x, slice(0, shown))], names_in(posterior)[:shown]
    for name, variable in posterior.variables.items():
        if variable.dimensions == ("chain", "draw") and len(names) < MAX_PARAMETERS:
            values.append(read(variable)[:, :, None])
            names.append(name)
    stats = {}
    if "sample_stats" in data.groups:
        stats = {name: read(variable) for name, variable in data["sample_stats"].variables.items()
                 if variable.dimensions == ("chain", "draw")}
    kept = np.atleast_1d(getattr(data, "chains_kept", []))
    numbers = [int(kept[c]) if len(kept) == num_chains else int(c) for c in chains]
    return Draws(np.concatenate(values, axis=2), names, shown, num_chains, numbers, stats,
                 "resampled" in data.ncattrs(), int(getattr(data, "thin", 1)))


def spread(count, most):
    """At most so many of 0, 1, ..., count - 1, evenly."""
    return np.arange(count) if count <= most else np.floor((np.arange(most) + 0.5) * count / most).astype(int)


def read_run(summary, draws):
    return Run(read_summary(summary), None if draws is None else read_draws(draws))
