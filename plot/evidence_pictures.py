# SPDX-License-Identifier: Apache-2.0
"""Pictures of an estimate of log Z: its estimators, the ladder of temperatures, and travel along it.

Every function takes a Run and gives (figure, caption), or None where the run has nothing for it to show.
"""
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

import style
from draw_pictures import CHAIN_COLORS, TRUTH, few_ticks, legend_above, new_figure

MAX_MARKED = 60  # levels that get a mark each

# Estimates of log Z among a summary's diagnostics, in the order in which they are shown.
ESTIMATORS = {"integrated": "levels integrated out", "stepping_stones": "stepping stones",
              "bridge": "Bennett, neighbours", "mbar": "MBAR", "thermodynamic_integration": "thermodynamic integration",
              "forward": "forward", "backward": "backward", "bennett": "Bennett, both ways", "reverse": "reverse",
              "pilot_log_z": "the pilot's particles", "scout_log_z": "the scout's particles"}


def finite(value):
    return isinstance(value, (int, float)) and np.isfinite(value)


def estimates_of(run):
    """[(name, estimate, standard error or 0, kind)]: what the run says, and by what else it could have said it."""
    found = []
    for key, name in ESTIMATORS.items():
        one = run.get("diagnostics", key)
        if isinstance(one, dict) and finite(one.get("estimate")):
            if run.get("diagnostics", "bennett") and key in ("forward", "reverse"):
                name = f"annealing {'forward' if key == 'forward' else 'back'}"
            elif key in ("forward", "backward"):
                name = f"{key} stepping stones"
            found.append((name, one["estimate"], one.get("se") or 0.0, "other"))
    return found


def shown(lines, copies, truth):
    """From where to where log Z is drawn: a bound far outside would leave no room for what it is compared with."""
    ends = [value + sign * 2 * error for _, value, error, _ in lines for sign in (-1, 1)] + copies
    ends += [truth] if finite(truth) else []
    low, high = min(ends), max(ends)
    room = max(high - low, 1e-6 * max(1, abs(low)))
    return low - room, high + room


def log_z(run):
    """log Z by every estimator of the run, with its bounds and the truth."""
    z = run.get("log_z")
    if not isinstance(z, dict) or not finite(z.get("estimate")) or run.get("target", "items"):
        return None
    lines = [("log Z", z["estimate"], z.get("se") or 0.0, "answer"), *estimates_of(run)]
    bounds = finite(z.get("lower")), finite(z.get("upper"))
    copies = [item["log_z"]["estimate"] for item in run.get("items") or []
              if finite((item.get("log_z") or {}).get("estimate"))]
    if len(lines) == 1 and not any(bounds) and not copies:
        return None  # one number is no picture
    height = 0.3 * (len(lines) + any(bounds) + bool(copies)) + 1.1
    figure, axes = new_figure(height, 1, 1)
    ax, names = axes[0, 0], []
    for place, (name, value, error, kind) in enumerate(lines):
        color = CHAIN_COLORS[0] if kind == "answer" else "#555555"
        ax.errorbar(value, -place, xerr=2 * error, fmt="D" if kind == "answer" else "o", color=color, markersize=6,
                    elinewidth=1.8 if kind == "answer" else 1.3, capsize=3)
        names.append(name)
    if any(bounds):
        left, right = within = shown(lines, copies, run.get("truth", "log_z"))
        ends = [np.clip(z[key], left, right) if there else z["estimate"] for key, there in zip(("lower", "upper"), bounds)]
        ax.plot(ends, [-len(names)] * 2, color=CHAIN_COLORS[2], linewidth=2.2)
        for end, key, there, beyond in zip(ends, ("lower", "upper"), bounds, ("<", ">")):
            if there:
                ax.plot(end, -len(names), marker="|" if end == z[key] else beyond, markersize=13 if end == z[key] else 7,
                        markeredgewidth=2.2 if end == z[key] else 0, color=CHAIN_COLORS[2], clip_on=False)
            if there and end != z[key]:
                ax.annotate(f"{z[key]:.6g}", (end, -len(names)), xytext=(6 if beyond == "<" else -6, 5),
                            textcoords="offset points", ha="left" if beyond == "<" else "right", fontsize="small")
        if any(end != z.get(key) for end, key, there in zip(ends, ("lower", "upper"), bounds) if there):
            ax.set_xlim(*within)
        names.append("bounds" if all(bounds) else "lower bound" if bounds[0] else "upper bound")
    if copies:
        ax.scatter(copies, [-len(names)] * len(copies), s=16, color=CHAIN_COLORS[0], alpha=0.45, linewidths=0)
        names.append("each group of copies")
    truth = run.get("truth", "log_z")
    if finite(truth):
        ax.axvline(truth, color=TRUTH, linewidth=1.6, linestyle=(0, (4, 2.5)), zorder=0)
        legend_above(figure, [Line2D([], [], color=TRUTH, linewidth=1.8, linestyle=(0, (4, 2.5)))], ["true log Z"])
    ax.set_yticks([-place for place in range(len(names))], names)
    ax.set_ylim(-len(names) + 0.4, 0.6)
    ax.set_xlabel("log Z (nats)")
    ax.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.8g}".replace("-", "\N{MINUS SIGN}")))
    ax.grid(True, axis="x")
    ax.tick_params(axis="y", length=0)
    return figure, "Bars: two standard errors. Estimators that lie further apart than these are not to be relied on, " \
                   "nor is the run."


def schedule(run):
    """The ladder of inverse temperatures, and how hard each of its steps is."""
    ladder = run.get("diagnostics", "schedule")
    if not isinstance(ladder, list) or len(ladder) < 2:
        return None
    ladder = np.array(ladder, dtype=float)
    rejection = run.get("diagnostics", "rejection")
    rejection = np.array(rejection, dtype=float) if isinstance(rejection, list) else np.array([])
    paired = len(rejection) == len(ladder) - 1
    columns = 3 if paired else 1
    figure, axes = new_figure(3.3, 1, columns)
    left = axes[0, 0]
    marks = {"marker": "o", "markersize": 4} if len(ladder) <= MAX_MARKED else {}
    left.plot(np.arange(len(ladder)), ladder, color=CHAIN_COLORS[0], linewidth=1.6, **marks)
    low = ladder[ladder > 0].min()
    if low < 0.02:  # the first steps would all lie on the axis
        left.set_yscale("symlog", linthresh=low)
        left.set_ylim(0, 1.25)
        ticks = [0] + [10.0**k for k in range(int(np.ceil(np.log10(low) - 1e-9)), 1)]
        left.set_yticks(ticks[:1] + ticks[1:][::-1][::max(1, len(ticks) // 6)][::-1])
        left.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        left.yaxis.set_minor_formatter(NullFormatter())
    else:
        left.set_ylim(0, 1.05)
    left.set_xlabel("level")
    left.set_ylabel("inverse temperature β")
    left.set_title("Ladder", loc="left", fontweight="bold")
    left.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    left.grid(True, axis="y")
    if paired:
        middle, right = axes[0, 1], axes[0, 2]
        middle.bar(np.arange(1, len(ladder)), 100 * rejection, color=CHAIN_COLORS[0], width=0.8)
        middle.axhline(100 * rejection.mean(), color=style.INK, linewidth=1.1, linestyle=(0, (4, 3)))
        middle.set_xlabel("pair of levels")
        middle.set_ylabel("swaps rejected (%)")
        middle.set_ylim(0, max(5, 115 * rejection.max()))
        middle.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        middle.set_title("Rejection", loc="left", fontweight="bold")
        right.plot(ladder, np.concatenate([[0], np.cumsum(rejection)]), color=CHAIN_COLORS[0], linewidth=1.6, **marks)
        right.set_xlim(0, 1)
        right.set_ylim(bottom=0)
        right.set_xlabel("inverse temperature β")
        right.set_ylabel("barrier Λ(β)")
        right.set_title("Communication barrier", loc="left", fontweight="bold")
        few_ticks(right.xaxis)
        for ax in (middle, right):
            ax.grid(True, axis="y")
    barrier = run.get("diagnostics", "barrier")
    said = f"{len(ladder)} levels from the base (β = 0) to the target (β = 1)."
    if finite(barrier):
        moves = "swaps" if paired else "moves of β"  # parallel tempering alone has rejections of swaps to show
        said += f" Communication barrier {barrier:.3g}: about {max(2, round(2 * barrier))} levels serve {moves} best."
    if paired:
        said += " Dashed: the mean; where the barrier rises steeply, neighbouring levels differ most, and equal bars " \
                "say that the ladder has adapted to that."
    return figure, said


def trips_of(run):
    """Round trips between β = 0 and β = 1 that a chain made, on average, or None."""
    trips, chains = run.get("diagnostics", "round_trips"), run.get("chains")
    if not finite(trips) or not finite(chains) or chains < 1:
        return None
    return float(trips) if run.get("target", "items") else trips / chains


def least_trips(run):
    """Of a chain, that the gate round_trips asks for."""
    return float(run.get("diagnostics", "least_round_trips") or 1)


def round_trips(run):
    """Round trips of a chain against the fewest that the gate allows."""
    trips = trips_of(run)
    if trips is None:
        return None
    figure, axes = new_figure(1.25, 1, 1)
    ax = axes[0, 0]
    least = least_trips(run)
    low, high = min(0.1, 0.5 * trips) if trips > 0 else 0.1, max(20, 2 * trips, 2 * least)
    color = CHAIN_COLORS[0] if trips >= least else CHAIN_COLORS[1]
    ax.barh(0, max(trips, low) - low, left=low, color=color, height=0.5)
    ax.axvline(least, color=style.INK, linewidth=1.6, linestyle=(0, (4, 2.5)))
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    ax.set_ylim(-0.5, 0.75)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.text(least, 0.5, f" at least {least:g}", fontsize=9, va="bottom")
    ax.set_xlabel("round trips of a chain between β = 0 and β = 1")
    if run.get("target", "items"):
        return figure, f"{trips:.3g} round trips in the middle of the items."
    return figure, f"{run.get('diagnostics', 'round_trips'):,.0f} round trips of {run.get('chains'):,} chains: " \
                   f"{trips:.3g} each."


