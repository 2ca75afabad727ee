# SPDX-License-Identifier: Apache-2.0
"""Root mean squared errors over replicates, their bootstrap intervals, and the published ones beside them."""
import math
from dataclasses import dataclass

import numpy as np

NUM_BOOTSTRAP = 2000
FAMILY_LIMIT = 4  # more entries than this of one vector are shown as one bar, their root mean square


@dataclass
class Column:
    """What one group of bars shows: a single quantity, or all entries of a vector."""

    name: str
    quantities: list


def vector_of(quantity):
    """mean[3] -> mean."""
    return quantity.split("[", 1)[0]


def base_of(vector):
    """The quantity that says how far the base of a path is from the truth: no result, but what results are held
    against (host/studies/study_pooled.hpp)."""
    return "base_log_z" if vector == "log_z" else f"base_{vector.removesuffix('_error')}_error"


def columns_of(quantities, split=False):
    """One column per quantity; vectors with many entries become one column each."""
    vectors = {}
    for quantity in quantities:
        vectors.setdefault(vector_of(quantity), []).append(quantity)
    columns = []
    for vector, entries in vectors.items():
        if len(entries) > FAMILY_LIMIT and not split:
            columns.append(Column(f"{vector}\n(all {len(entries)})", entries))
        else:
            columns += [Column(entry, [entry]) for entry in entries]
    return columns


def quantities_with_truth(results, wanted, labels):
    """The wanted quantities (all, when none is named) whose truth is known for some label; a vector's name stands for
    all its entries."""
    known = [quantity for quantity in results.quantities
             if any(math.isfinite(results.truth[label].get(quantity, math.nan)) for label in labels)]
    if not wanted:
        return [quantity for quantity in known if not quantity.startswith("base_")]
    return [quantity for quantity in known if quantity in wanted or vector_of(quantity) in wanted]


def squared_errors(results, label, quantities):
    """Per replicate, the mean over `quantities` of (estimate - truth)^2; failed replicates are left out."""
    usable = [q for q in quantities if math.isfinite(results.truth[label].get(q, math.nan))]
    if not usable:
        return np.array([])
    errors = np.array([results.estimate[label][q] - results.truth[label][q] for q in usable])
    squares = np.mean(errors**2, axis=0)
    return squares[np.isfinite(squares)]


def bootstrap_means(values, seed=20):
    """Means of resampled replicates; a fixed seed, so that a picture never changes by itself."""
    generator = np.random.default_rng(seed)
    picks = generator.integers(len(values), size=(NUM_BOOTSTRAP, len(values)))
    return values[picks].mean(axis=1)


def rmse(squares):
    """(RMSE, low, high): the 16th and 84th bootstrap percentiles, one standard error on each side."""
    value = math.sqrt(squares.mean())
    if len(squares) < 2:
        return value, value, value
    low, high = np.sqrt(np.percentile(bootstrap_means(squares), [16, 84]))
    return value, min(low, value), max(high, value)


def pooled_rmse(squares):
    """rmse() of several labels as one: replicates are resampled within each, for systems are no random draws."""
    value = math.sqrt(np.concatenate(squares).mean())
    if max(map(len, squares)) < 2:
        return value, value, value
    weights = np.array([len(values) for values in squares], dtype=float)
    # A generator for each label: with one seed, all would resample the same replicates.
    means = np.array([bootstrap_means(values, 20 + rank) for rank, values in enumerate(squares)])
    low, high = np.sqrt(np.percentile(weights @ means / weights.sum(), [16, 84]))
    return value, min(low, value), max(high, value)


def published_rmse(results, setting, label, quantities):
    """The printed RMSE, else sqrt(sd^2 + (mean - truth)^2) of the printed mean and sd; root mean square over
    the quantities.

    None unless all of them were published and have a truth.
    """
    squares = []
    for quantity in quantities:
        truth = results.truth[label].get(quantity, math.nan)
        if setting is None or not math.isfinite(truth):
            return None
        if quantity in setting.published_rmse:
            squares.append(setting.published_rmse[quantity] ** 2)
            continue
        if quantity not in setting.published:
            return None
        mean, sd = setting.published[quantity]
        squares.append(sd**2 + (mean - truth) ** 2)
    return math.sqrt(sum(squares) / len(squares)) if squares else None
