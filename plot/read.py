# SPDX-License-Identifier: Apache-2.0
"""Reads what a study left behind: the study file, results.csv, timings.csv, draws and contours.

Bad input raises PlotError with one line (`what is wrong (why it matters). what to do`); a missing optional
file is None, and the caller says so.
"""
import csv
import json
import math
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import netCDF4
import numpy as np

from grid import combinations
from plot_table import PlotError, check_plot

RESULT_COLUMNS = ("label", "replicate", "quantity", "estimate", "se", "truth", "error", "gradients")
TIMING_COLUMNS = ("label", "seconds")


@dataclass
class Setting:
    """One [[setting]] of a study, as far as pictures need it."""

    label: str
    target: str = ""
    density: list = field(default_factory=list)  # what tells apart the densities of a study
    sampler: str = ""
    chains: int = 0  # pooled in one replicate; 0: unknown
    pseudo_samples: int = 0  # 0: not a pseudo-extended sampler
    published: dict = field(default_factory=dict)  # quantity -> (mean, sd)
    published_rmse: dict = field(default_factory=dict)  # quantity -> RMSE


@dataclass
class Study:
    name: str
    title: str
    quantities: list
    plot: dict
    settings: dict  # label -> Setting, in the order of the file


@dataclass
class Results:
    """results.csv; estimate[label][quantity] is an array over replicates, truth likewise a number or NaN."""

    labels: list
    quantities: list
    estimate: dict
    truth: dict
    gradients: dict  # label -> mean gradients of one replicate
    failed: int  # rows without a finite estimate, left out of every figure


@dataclass
class Draws:
    """x: (chain, draw, dim), unweighted; beta: inverse temperatures of all pseudo-samples, flat, or None."""

    x: np.ndarray
    beta: np.ndarray | None
    names: list  # of the axes
    num_chains: int  # of a replicate; x may hold a few of them


@dataclass
class Contours:
    """Log density on a grid: x (columns) and y (rows); y is None for a one-dimensional target."""

    x: np.ndarray
    y: np.ndarray | None
    log_density: np.ndarray


def file_key(label):
    """The part of a file's name that stands for a label, another one for every label (host/studies/study_pictures.cpp)."""
    def coded(letter):
        if letter == " ":
            return "_"
        if letter.isascii() and (letter.isalnum() or letter in "+-.="):
            return letter
        return "".join(f"%{byte:02X}" for byte in letter.encode())
    return "".join(coded(letter) for letter in label)


def pseudo_samples_in(label):
    match = re.search(r"\bN\s*=\s*(\d+)", label)
    return int(match.group(1)) if match else 0


def read_toml(path):
    try:
        with open(path, "rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise PlotError(f"cannot read {path} ({error.strerror}). Give --study an existing file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise PlotError(f"{path} is not valid TOML ({reason}). Correct that line.") from None


def read_setting(table, path):
    if not isinstance(table, dict) or not isinstance(table.get("label"), str):
        raise PlotError(f"{path}: a [[setting]] has no label (it names the rows of results.csv). "
                        "Add label = \"...\".")
    label = table["label"]
    published = {}
    for quantity, pair in table.get("published", {}).items():
        numbers = isinstance(pair, list) and len(pair) == 2 and all(type(v) in (int, float) for v in pair)
        if not numbers or pair[1] < 0:
            raise PlotError(f"{path}: published \"{quantity}\" of \"{label}\" is not [mean, sd] (its RMSE "
                            f"needs both). Write \"{quantity}\" = [mean, sd].")
        published[quantity] = (float(pair[0]), float(pair[1]))
    published_rmse = {}
    for quantity, value in table.get("published_rmse", {}).items():
        if type(value) not in (int, float) or not value >= 0:
            raise PlotError(f"{path}: published_rmse \"{quantity}\" of \"{label}\" is {value!r} (an RMSE "
                            "is one number, at least 0). Correct it.")
        published_rmse[quantity] = float(value)
    sampler_settings = table.get("sampler_settings", {})
    density = [str(table.get("target", "")), sorted(table.get("target_settings", {}).items()), table.get("data", "")]
    return Setting(label=label, target=density[0], density=density,
                   sampler=str(table.get("sampler", "")), chains=int(table.get("chains", 0)),
                   pseudo_samples=int(sampler_settings.get("pseudo_samples", pseudo_samples_in(label))),
                   published=published, published_rmse=published_rmse)


def read_study(path, results_dir):
    """The study's file; without one, a study named after the folder, which draws RMSEs."""
    if path is None:
        name = Path(results_dir).resolve().name
        return Study(name=name, title=name, quantities=[], plot={}, settings={})
    table = read_toml(path)
    name = str(table.get("name", Path(path).stem))
    if not re.fullmatch(r"[\w][\w .+-]*", name):
        raise PlotError(f"{path}: the study's name \"{name}\" cannot name a file (the picture is called "
                        "after it). Use letters, digits, '-', '_' and '.'.")
    plot = table.get("plot", {})
    check_plot(plot, path)
    try:
        settings = [read_setting(one, path) for entry in table.get("setting", []) for one in combinations(entry)]
    except (AttributeError, TypeError, ValueError) as error:
        raise PlotError(f"{path}: a [[setting]] holds a value of the wrong kind ({error}). "
                        "Correct it.") from None
    return Study(name=name, title=str(plot.get("title", table.get("title", name))),
                 quantities=list(plot.get("quantities", table.get("quantities", []))), plot=plot,
                 settings={setting.label: setting for setting in settings})


def read_rows(path, columns):
    """The rows of a CSV file with a header, as dictionaries with their line numbers."""
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            missing = [name for name in columns if name not in (reader.fieldnames or [])]
            if missing:
                raise PlotError(f"{path} has no column {', '.join(missing)} (the pictures are made from it). "
                                "Run the study again, or restore the file.")
            rows = [(reader.line_num, row) for row in reader]
    except OSError as error:
        raise PlotError(f"cannot read {path} ({error.strerror}). "
                        "Give the folder that `lockstep study` wrote.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise PlotError(f"{path} is not a CSV text ({error}). "
                        "Run the study again, or restore the file.") from None
    if not rows:
        raise PlotError(f"{path} has no rows (there is nothing to draw). Run the study again.")
    for line, row in rows:
        if None in row or any(row[name] is None for name in columns):
            raise PlotError(f"{path}, line {line}: wrong number of columns (the file may be cut off). "
                            "Run the study again with --resume.")
    return rows


def number(text, path, line, column, empty=None):
    if text.strip() == "" and empty is not None:
        return empty
    try:
        return float(text)
    except ValueError:
        raise PlotError(f"{path}, line {line}: {column} is \"{text}\" (a number is needed). "
                        "Run the study again, or restore the file.") from None


def read_results(path):
    labels, quantities, estimate, truth, gradients = [], [], {}, {}, {}
    seen, failed = set(), 0
    for line, row in read_rows(path, RESULT_COLUMNS):
        label, quantity = row["label"], row["quantity"]
        key = (label, row["replicate"], quantity)
        if key in seen:
            raise PlotError(f"{path}, line {line}: \"{label}\", replicate {row['replicate']}, {quantity} "
                            "comes twice (RMSEs would count it double). Run the study again.")
        seen.add(key)
        if label not in estimate:
            labels.append(label)
            estimate[label], truth[label], gradients[label] = {}, {}, []
        if quantity not in quantities:
            quantities.append(quantity)
        value = number(row["estimate"], path, line, "estimate", empty=math.nan)
        failed += not math.isfinite(value)
        estimate[label].setdefault(quantity, {})[row["replicate"]] = value
        truth[label][quantity] = number(row["truth"], path, line, "truth", empty=math.nan)
        gradients[label].append(number(row["gradients"], path, line, "gradients", empty=math.nan))
    arrays = {}
    for label, table in estimate.items():
        # One place per replicate in every quantity, NaN where it failed: replicates are resampled whole.
        replicates = list(dict.fromkeys(replicate for values in table.values() for replicate in values))
        arrays[label] = {quantity: np.array([values.get(replicate, math.nan) for replicate in replicates])
                         for quantity, values in table.items()}
    return Results(labels, quantities, arrays, truth,
                   {label: float(np.mean(values)) for label, values in gradients.items()}, failed)


def read_timings(path):
    """label -> seconds, or None without the file."""
    if not Path(path).exists():
        return None
    return {row["label"]: number(row["seconds"], path, line, "seconds")
            for line, row in read_rows(path, TIMING_COLUMNS)}


def read_draws(path):
    """One label's draws, or None without the file."""
    if not Path(path).exists():
        return None
    try:
        with netCDF4.Dataset(path) as data:
            data.set_auto_mask(False)
            x = np.asarray(data["posterior"]["x"][:], dtype=float)
            names = names_in(data["posterior"])
            num_chains = int(getattr(data, "chains_of_replicate", len(x)))
            beta = None
            if "weighted" in data.groups and "beta" in data["weighted"].variables:
                beta = np.asarray(data["weighted"]["beta"][:], dtype=float).ravel()
    except (OSError, IndexError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise PlotError(f"cannot read the draws in {path} ({reason}). Run that setting again.") from None
    if x.ndim == 2:  # a one-dimensional target written without its dimension
        x = x[:, :, None]
    if x.ndim != 3 or x.size == 0:
        raise PlotError(f"{path}: posterior x has shape {x.shape} ((chain, draw, dim) is needed). "
                        "Run that setting again.")
    return Draws(x, None if beta is None else beta[np.isfinite(beta)], names, num_chains)


def names_in(group):
    """Of x's axes: the coordinate of its last dimension where it holds names, else x[i]."""
    x = group["x"]
    if x.ndim < 3:
        return ["x"]
    last = x.dimensions[2]
    values = group[last][:] if last in group.variables else range(x.shape[2])
    return [value if isinstance(value, str) else f"x[{i}]" for i, value in enumerate(values)]


def density_file(folder, setting, settings, ending):
    """The file about a setting's density, or None: named after any setting that has it, else after the target."""
    names = [file_key(other.label) for other in (setting, *settings) if other.density == setting.density]
    return next((path for name in [*names, setting.target]
                 if name and (path := Path(folder) / f"{name}{ending}").exists()), None)


def read_exact_draws(folder, setting, settings=()):
    """Exact draws (draw, dim) of a setting's target, or None."""
    path = density_file(folder, setting, settings, ".nc")
    return None if path is None else read_draws(path).x[0]


def read_contours(folder, setting, settings=()):
    """The log density of a setting's target, or None."""
    path = density_file(folder, setting, settings, ".json")
    if path is None:
        return None
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        x = np.array(table["x"], dtype=float)
        y = np.array(table["y"], dtype=float) if "y" in table else None
        log_density = np.array(table["log_density"], dtype=float)  # null becomes NaN
    except (ValueError, KeyError, TypeError) as error:
        raise PlotError(f"{path} is not a contour file ({error!r}). "
                        "Write x, optionally y, and log_density.") from None
    shape = (len(x),) if y is None else (len(y), len(x))
    if log_density.shape != shape or min(shape) < 3:
        raise PlotError(f"{path}: log_density has shape {log_density.shape}, the grid {shape} (they must "
                        "agree). Write one row per y and one column per x, three at least.")
    return Contours(x, y, np.where(np.isnan(log_density), -np.inf, log_density))
