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
    target = setting.get("target_settings") if isinstance(setting.get("target_settings"), dict) else {}
    axes = {key: setting[key] for key in PLACEHOLDERS if key in setting}
    axes = {key: value if isinstance(value, list) else [value] for key, value in axes.items()}
    of_target = {key: value for key, value in target.items() if isinstance(value, list)}
    made = []
    for values in itertools.product(*axes.values(), *of_target.values()):
        one = {**setting, **dict(zip(axes, values))}
        own = dict(zip(of_target, values[len(axes):]))
        if own:
            one["target_settings"] = {**target, **own}
        texts = {name: label_text(key, one[key]) for key in axes for name in PLACEHOLDERS[key]}
        texts.update({f"{{{key}}}": label_text(key, value) for key, value in own.items()})
        for name, text in texts.items():
            one["label"] = one["label"].replace(name, text)
        made.append(one)
    return made
