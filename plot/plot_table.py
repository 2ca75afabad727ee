# SPDX-License-Identifier: Apache-2.0
"""What the [plot] table of a study may hold, and how bad input is refused."""
import difflib


class PlotError(Exception):
    """The user's input is wrong: one line, exit status 2."""


PLOT_KEYS = {"kind": str, "panels": list, "places": list, "title": str, "quantities": list, "labels": list, "groups": dict,
             "split": bool, "cost": str, "count_modes": bool, "columns": int, "dims": list,
             "equal_aspect": bool, "trace_draws": int, "against": str}


def check_plot(plot, path):
    """Refuses what a picture would silently ignore or stumble over."""
    if not isinstance(plot, dict):
        raise PlotError(f"{path}: plot is not a table (it says what to draw). Write [plot].")
    for key, value in plot.items():
        if key not in PLOT_KEYS:
            near = difflib.get_close_matches(key, PLOT_KEYS, n=1)
            hint = f"Did you mean \"{near[0]}\"?" if near else f"Use one of {', '.join(PLOT_KEYS)}."
            raise PlotError(f"{path}: [plot] has an unknown key \"{key}\" (it would have no effect). {hint}")
        if type(value) is not PLOT_KEYS[key]:
            raise PlotError(f"{path}: [plot] {key} is {value!r} ({PLOT_KEYS[key].__name__} is needed). "
                            "Correct it.")
    for key, units in (("cost", ("seconds", "gradients")), ("against", ("gradients", "chains", "gradients_per_chain"))):
        if plot.get(key, units[0]) not in units:
            raise PlotError(f"{path}: [plot] {key} is \"{plot[key]}\" (there is no such unit). "
                            f"Use {' or '.join(units)}.")
    dims = plot.get("dims", [0, 1])
    if len(dims) != 2 or any(type(dim) is not int or dim < 0 for dim in dims):
        raise PlotError(f"{path}: [plot] dims is {dims} (two coordinates span the plane). "
                        "Write dims = [0, 1].")
    if plot.get("columns", 1) < 1 or plot.get("trace_draws", 2) < 2:
        raise PlotError(f"{path}: [plot] columns or trace_draws is too small (nothing would show). "
                        "Use at least 1 and 2.")

