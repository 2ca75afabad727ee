# SPDX-License-Identifier: Apache-2.0
"""The gates of a run in words: what each asks, what came out, and what to do where it failed."""
import math
from dataclasses import dataclass

from evidence_pictures import finite, least_trips, trips_of

PASSED, FAILED, OPEN = "passed", "failed", "not established"


@dataclass
class Gate:
    name: str
    state: str
    found: str
    needed: str
    meaning: str
    advice: str  # where it did not pass


def plain(value, digits=6):
    """Numbers of people: 1,234,567, 3.4e+09, 0.0123."""
    if not finite(value):
        return "" if value is None else str(value)
    if isinstance(value, int) or float(value).is_integer() and abs(value) < 1e7:
        return f"{int(value):,}"
    return f"{value:.{digits}g}".replace("-", "\N{MINUS SIGN}", 1) if value < 0 else f"{value:.{digits}g}"


def number(value):
    return plain(value, 4) if finite(value) else ""


def worst(run, key):
    value = run.get("diagnostics", key)
    return None if value is None else number(value)


def modes_visited(run):
    found = run.get("diagnostics", "modes", "found")
    if found is None:
        return None
    hits = run.get("diagnostics", "modes", "least_hits")
    text = f"{found} found" + (f", each at least {hits:,} times" if hits else "")
    expected = run.get("diagnostics", "modes", "expected")
    return text if expected is None else \
        f"{run.get('diagnostics', 'modes', 'visited')} of {expected} visited ({text})"


def divergences(run):
    count, transitions = run.get("diagnostics", "divergences"), (run.get("iterations") or 0) * (run.get("chains") or 0)
    if not finite(count) or run.get("diagnostics", "acceptance") is None:
        return None
    return f"{count:,}" + (f" ({100 * count / transitions:.2g} %)" if transitions > 0 else "")


def counted(name):
    """Of a gate that a transition has of its own: what it counted."""
    return lambda run: number(run.get("diagnostics", "counters", name))


def judged_by_weights(run):
    return run.get("command") == "sample" or run.get("sampler", "name") == "pe"


def least_acceptance(run):
    names = run.get("sampler", "name"), run.get("sampler", "settings", "transition")
    return 0.04 if "ram" in names else 0.2  # half of what it aims at


def weight_ess(run):
    if run.get("diagnostics", "least_particles") is not None:
        return worst(run, "least_particles")
    if run.get("diagnostics", "annealing_ess") is not None:
        return worst(run, "annealing_ess")
    return worst(run, "weight_ess") if judged_by_weights(run) else None


def weights_needed(run):
    if run.get("target", "items"):
        return "at least 2 runs, of nine items in ten"
    if run.get("diagnostics", "least_particles") is not None:
        return "at least 20 in each group"
    return "at least 20" if run.get("diagnostics", "annealing_ess") is not None else f"at least {10 * run.dim}"


def round_trips(run):
    trips = trips_of(run)
    return None if trips is None else f"{trips:.3g} a chain"


def bases(run):
    own, other = run.get("log_z", "estimate"), run.get("diagnostics", "other_base_log_z", "estimate")
    return f"{own:.4g}, the other {other:.4g}" if finite(own) and finite(other) else None


def difference(run):
    drift = run.get("diagnostics", "drift")
    if isinstance(drift, dict):
        return f"{drift.get('estimate', 0):+.3g} ± {drift.get('se', 0):.2g}"
    error = run.get("diagnostics", "drift_se")
    return f"{drift:+.3g} ± {error:.2g}" if finite(drift) and finite(error) else None


def estimators(run):
    """The pair that the gate compares; of several, the one further apart."""
    if run.get("sampler", "name") == "bdmc" and finite(run.get("diagnostics", "forward_reverse_z")):
        return f"forward and back {plain(run.get('diagnostics', 'forward_reverse_z'), 2)} standard errors apart"
    pairs = []
    for names in (("integrated", "stepping_stones"), ("bridge", "mbar"), ("log_z", "bennett")):
        one, other = (run.get("log_z") if key == "log_z" else run.get("diagnostics", key) for key in names)
        if all(isinstance(z, dict) and finite(z.get("estimate")) for z in (one, other)):
            apart, errors = abs(one["estimate"] - other["estimate"]), (one.get("se") or 0, other.get("se") or 0)
            error = math.hypot(*errors) if names[0] == "log_z" else max(errors)  # the former share their draws
            pairs.append((apart / error if error > 0 else 0, apart, names))
    if not pairs:
        return None
    score, apart, (one, other) = max(pairs)
    return f"{one.replace('_', ' ')} and {other.replace('_', ' ')} {apart:.2g} nats apart" + (
        f", {format(score, '.1f' if score < 1e4 else '.1e')} standard errors" if score > 0 else "")


def particles(key):
    """What log Z is by the particles that went before, beside the run's."""
    def found(run):
        value, said = run.get("diagnostics", key, "estimate"), run.get("log_z", "estimate")
        return f"{said:.4g} against {value:.4g}" if finite(value) and finite(said) else None
    return found


def bounds(run):
    low, high = run.get("log_z", "lower"), run.get("log_z", "upper")
    return f"{low:.5g} to {high:.5g}" if finite(low) and finite(high) else None


def error(run):
    if run.get("command") != "evidence" or "se" not in run.summary["failed_gates"]:
        return None  # the summary does not say what was asked for
    return number(run.get("log_z", "se"))



LONGER = "Run longer: more --iterations, and more --warmup where it is short."
STARTS = "Give starts in the modes that you know (--init FILE), or a larger sampler.scout_particles."


def modes(run):
    """What helps where chains keep to different modes."""
    return f"{LONGER} " + (STARTS if run.get("sampler", "name") == "pe" else
                           "Separated modes need --sampler pe, or lockstep evidence.")



# name -> (what was found or None where the gate does not apply, what is needed, what it means, what to do)
GATES = {
    "length": (lambda run: plain(run.get("iterations")) if judged_by_weights(run) else None, "at least 100 iterations and effective draws, and errors of 8 degrees of freedom",
               "Recorded iterations of a chain: below this nothing here can be judged.", LONGER),
    "starts": (lambda _: None, "all of them", "Whether every start or mode that --init gives was taken up.",
               "More --chains than starts; where a mode was left again, a longer run or a wider base."),
    "modes": (modes_visited, "all that should hold over 1 %",
              "Modes that were found before the run, and how many of those that should hold over 1 % were visited at "
              "least a third as often as they should be. That there are no others nobody can know: narrow ones may hide "
              "from any search, and --init takes hints.",
              "A mode is missing: run longer, with more --chains, or by another method."),
    "modes_mass": (lambda _: None, "known within a factor of 2, and most of the modes visited",
                   "What each mode that was found should hold, and whether draws met it.",
                   "Nobody can say whether this run visits its modes as it should: run longer, or by a sampler with a log Z "
                   "(pe, or lockstep evidence)."),
    "rhat": (lambda run: None if run.get("diagnostics", "nested_rhat_max") else worst(run, "rhat_max"), "at most 1.05",
             "R-hat, the largest over the parameters: how much further apart the chains lie than each of them reaches "
             "(1: not at all).",
             lambda run: f"The chains sample different parts of the target, or are too short. {modes(run)}"),
    "nested_rhat": (lambda run: worst(run, "nested_rhat_max"), "at most 1.05",
                    "R-hat between groups of chains, for chains that are short one by one.",
                    lambda run: f"The groups sample different parts of the target, or are too short. {modes(run)}"),
    "acceptance": (lambda run: worst(run, "acceptance"),
                   lambda run: f"{least_acceptance(run):g} to 0.99" if judged_by_weights(run) else "at least 0.2",
                   "Share of the proposals that were accepted.",
                   "Too low: steps are too long for the target's narrowest part; raise sampler.target_acceptance or "
                   "--warmup. Too high: steps are needlessly short."),
    "divergences": (divergences, "below 1 % of the transitions",
                    "Trajectories on which the energy was lost: the target bends more sharply there than a step can "
                    "follow, so that part is entered too seldom.",
                    "Raise sampler.target_acceptance (0.95), look in the corner plot where they are, and "
                    "reparametrise the target there."),
    "ends": (lambda run: None, "at most 8 % of the draws",
             "Farthest draws of something from which trajectories are lost: chains do not get into what lies beyond.",
             "Raise sampler.target_acceptance (0.95), or reparametrise the target there."),
    "weight_ess": (weight_ess, weights_needed,
                   "Effective number of weighted draws behind the estimates.",
                   "A few draws carry the weight, and errors are not to be relied on. More gradients; for annealing "
                   "more sampler.temperatures."),
    "round_trips": (round_trips, lambda run: f"at least {least_trips(run):g} a chain",
                    "Travel between base (β = 0) and target (β = 1): what the first draws missed is found only by "
                    "chains that go to and fro.", "Chains are short: more --gradients, or fewer --chains."),
    "drift": (difference, "0 in its 99.7 % interval",
              "log Z from the second half of the run less that from the first; of smc, ais and bdmc, what particles move as they go "
              "on at β = 1 (moments too: the warnings name one).",
              "The run had not settled. More --gradients, or a larger sampler.discard where the method has it."),
    "estimators_disagree": (estimators, lambda run: "within 5 standard errors" if run.get("sampler", "name") == "bdmc" else
                            "within the 99.7 % interval of the worse", "Two estimates of log Z by different routes.",
                            f"Something is not visited as it should be. {STARTS} Seeds and methods that agree share the "
                            "scout."),
    "bounds_cross": (bounds, "lower bound ≤ upper bound, within 3 joint errors", "Bounds on log Z by annealing both ways.",
                     "Both are off by more than their errors: anneal longer (sampler.temperatures) or more often."),
    "log_z": (lambda run: number(run.get("log_z", "estimate")) or None if run.get("command") == "evidence" else None,
              "a finite number", "The estimate of log Z.",
              "No run reached the target with a finite weight: another base, or a look at the target."),
    "se": (error, "as asked by --se", "Standard error of log Z.",
           "The budget was spent before the error was small enough: more --gradients, or a larger --se."),
    "pilot": (particles("pilot_log_z"), "no contradiction",
              "log Z beside that of the particles of the pilot: apart by more than 3 nats and 5 errors is too much.",
              "Run longer, or from another base: one of the two has missed modes."),
    "scout": (particles("scout_log_z"), "no contradiction",
              "Particles of the scout beside the run: log Z apart by more than 3 nats and 5 errors is too much, and so is "
              "being 1.4 times as wide as the draws.",
              "Run longer, with smaller steps (sampler.target_acceptance) or more sampler.scout_particles: one of the two "
              "has missed modes, or a tail."),
    "ancestors": (lambda run: worst(run, "least_ancestors"), "at least 20 in each group",
                  "First particles from which those at the end descend.",
                  "A few ancestors stand for all: more --gradients, or a smaller sampler.rate."),
    "groups": (lambda run: worst(run, "effective_groups"), "half of the groups",
               "Groups of particles that share the weight.",
               "One group has met what others have not: more --gradients."),
    "base": (lambda run: run.get("diagnostics", "base") if run.get("command") == "evidence" else None,
             "wide enough, and fitted to its end", "The density at β = 0, from which chains reach the target.",
             "It is narrower than the target, or incomplete: more sampler.scout_particles, another sampler.base, a "
             "larger sampler.base_inflation."),
    "bases": (bases, "the other no more than 4 joint errors and 0.3 above", "log Z from the base of modes, and by particles "
              "from the scout's.", "The modes leave out a part of the target: sampler.base=scout, or --modes."),
    "gap": (lambda run: number(run.get("log_z", "gap")) or None if run.get("target", "items") else None,
            "narrow for nine items in ten", "Upper less lower bound on log Z, over the items.",
            "Bounds are wide: more sampler.temperatures."),
}


def gates_of(run):
    """Those that apply, failed ones first."""
    failed = list(run.summary["failed_gates"])
    settled = run.summary["verdict"] != OPEN  # else the gates it names could not be judged
    gates = []
    for name in [*failed, *(name for name in GATES if name not in failed)]:
        found, needed, meaning, advice = GATES.get(name, (counted(name), "", "", "The warnings say more."))
        found = found(run)
        if found is None and name not in failed:
            continue
        state = (FAILED if settled else OPEN) if name in failed else PASSED
        gates.append(Gate(name, state, str(found or ""), needed if isinstance(needed, str) else needed(run), meaning,
                          "" if state == PASSED else advice if isinstance(advice, str) else advice(run)))
    return gates
