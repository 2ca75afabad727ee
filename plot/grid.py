# SPDX-License-Identifier: Apache-2.0
"""The settings that one [[setting]] with lists stands for, as host/studies/study_grid.cpp makes them."""
import itertools
import math
from pathlib import PurePosixPath

# Keys that may be lists, and what stands for each in a label.
PLACEHOLDERS = {"data": ("{data}",), "sampler": ("{method}", "{sampler}"), "gradients": ("{gradients}",),
                "chains": ("{chains}",)}


def short_number(value):
    """1e6, 2.5e7: as studies write budgets."""
    if not (isinstance(value, (int, float)) and math.isfinite(value) and value > 0):
        return str(value)
    exponent = math.floor(math.log10(value))
    exponent += value / 10.0**exponent >= 10  # log10 rounds
    return f"{value / 10.0**exponent:g}e{exponent}"


def label_text(key, value):
    if key == "gradients":
        return short_number(value)
    return PurePosixPath(value).stem if key == "data" and isinstance(value, str) else str(value)


def combinations(setting):
    """The table itself where nothing is a list; `method` becomes `sampler`."""
    if not isinstance(setting, dict) or not isinstance(setting.get("label"), str):
        return [setting]  # that is complained about elsewhere
    setting = {("sampler" if key == "method" else key): value for key, value in setting.items()}
    axes = [key for key in PLACEHOLDERS if key in setting]
    entries = [setting[key] if isinstance(setting[key], list) else [setting[key]] for key in axes]
    made = []
    for values in itertools.product(*entries):
        one = {**setting, **dict(zip(axes, values))}
        for key, value in zip(axes, values):
            for placeholder in PLACEHOLDERS[key]:
                one["label"] = one["label"].replace(placeholder, label_text(key, value))
        made.append(one)
    return made
