#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes arviz_fixtures.json: what ArviZ says about draws that tests/host/estimators/unit_diagnostics.cpp makes again.

The draws are not stored, only how to make them: integer arithmetic up to one last division, so that Python
and C++ agree to the last bit. Needs ArviZ, and arviz-stats for the nested R-hat:

    python3 -m venv /tmp/arviz && /tmp/arviz/bin/pip install arviz==0.22.0 arviz-stats==0.8.0
    /tmp/arviz/bin/python tests/support/make_arviz_fixtures.py
"""

import json
import logging
import math
import os
import pathlib
import warnings

import arviz
import arviz_stats
from arviz_stats.base import array_stats
import numpy

logging.disable(logging.WARNING)
warnings.simplefilter("ignore")
MASK = (1 << 64) - 1


class SplitMix:
    """SplitMix64 (Steele, Lea, Flood 2014)."""

    def __init__(self, seed):
        self.state = seed

    def __call__(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)


def make_draws(case):
    """AR(1) in integers: state = (ar * state >> 8) + innovation, then shaped by the case's fields.

    The innovation is the sum of the four 16-bit parts of a random number less its mean, about normal. Fields:
    `ar` (autocorrelation * 256), `shift` (added per chain number), `coarse` (bits dropped: ties), `heavy`
    (divide by a uniform: Cauchy-like tails), `offset`, `denominator` (the last division), `constant` (this
    value and no other), `frozen` (chains below this number repeat their first draw).
    """
    if case["constant"] is not None:
        return numpy.full((case["chains"], case["draws"]), case["constant"])
    out = numpy.empty((case["chains"], case["draws"]))
    for chain in range(case["chains"]):
        random = SplitMix(1000 * case["seed"] + chain)
        state = 0
        for draw in range(case["draws"]):
            bits = random()
            innovation = sum((bits >> (16 * i)) & 0xFFFF for i in range(4)) - 131070
            state = ((case["ar"] * state) >> 8) + innovation
            value = ((state + case["shift"] * chain) >> case["coarse"]) + case["offset"]
            uniform = (random() >> 44) + 1
            divisor = uniform if case["heavy"] else case["denominator"]
            out[chain, draw] = value / divisor
        if chain < case["frozen"]:
            out[chain] = out[chain, 0]
    return out


DEFAULTS = dict(chains=4, draws=100, seed=1, ar=128, shift=0, coarse=0, heavy=False, offset=0,
                denominator=65536, constant=None, frozen=0, superchains=2)


def cases():
    for draws in (4, 5, 6, 7, 8, 9, 10, 11, 13, 21, 50, 101, 1000, 1001):
        yield f"ar1, {draws} draws", dict(draws=draws)
        yield f"one chain, {draws} draws", dict(draws=draws, chains=1, superchains=1)
    for i in range(12):  # the sum over lags ends at the last lag in some, with every combination of signs
        count = 1 + i % 3
        yield f"short {i}", dict(draws=10 + i // 6, ar=0 if i % 2 else -100, chains=count, superchains=count)
    yield "independent", dict(ar=0, draws=500)
    yield "antithetic", dict(ar=-128, draws=500)
    yield "strongly antithetic", dict(ar=-243, draws=333)
    yield "slow", dict(ar=243, draws=1500)
    yield "too slow", dict(ar=255, draws=500)
    yield "64 chains", dict(chains=64, draws=250, superchains=16)
    yield "64 chains, odd", dict(chains=64, draws=101, superchains=8, ar=230)
    yield "64 short chains", dict(chains=64, draws=5, superchains=16)
    yield "two chains", dict(chains=2, draws=301)
    yield "seven chains", dict(chains=7, draws=77, superchains=7)
    yield "heavy tails", dict(heavy=True, draws=400)
    yield "heavy tails, 64 chains", dict(heavy=True, chains=64, draws=100, superchains=4)
    yield "shifted", dict(shift=40000, draws=300)
    yield "shifted far, 64 chains", dict(shift=200000, chains=64, draws=60, superchains=8)
    yield "offset", dict(offset=65536 * 100000, draws=300)
    yield "narrow", dict(offset=1 << 40, denominator=1 << 40, coarse=4, draws=300)
    yield "tiny", dict(denominator=1 << 60, draws=300)
    # ArviZ takes values within 1e-15 of each other for a constant.
    yield "below resolution", dict(denominator=2.0**70, draws=50)
    yield "ties", dict(coarse=15, draws=200)
    yield "ties, odd", dict(coarse=16, draws=201, ar=200)
    yield "two values", dict(coarse=40, draws=150)
    yield "two values, slow", dict(coarse=40, draws=151, ar=240)
    yield "two values, 64 chains", dict(coarse=40, draws=40, chains=64, superchains=4)
    yield "constant", dict(constant=3.5)
    yield "constant, not dyadic", dict(constant=0.1, draws=33)
    yield "constant, one chain", dict(constant=-2.0, chains=1, superchains=1)
    yield "one frozen chain", dict(frozen=1, draws=120)
    yield "all frozen", dict(frozen=4, draws=64)


def number(x):
    x = float(x)
    return x if math.isfinite(x) else str(x)


def fixture(name, fields):
    case = {**DEFAULTS, **fields}
    draws = make_draws(case)
    ids = numpy.arange(case["chains"]) // (case["chains"] // case["superchains"])
    nested = float("nan")
    if case["superchains"] > 1:
        nested = array_stats.rhat_nested(draws, superchain_ids=ids, method="identity")
    expected = dict(
        rhat=arviz.rhat(draws), ess_bulk=arviz.ess(draws, method="bulk"),
        ess_tail=arviz.ess(draws, method="tail"), ess_mean=arviz.ess(draws, method="mean"),
        mcse_mean=arviz.mcse(draws, method="mean"),
        split_rhat=arviz.rhat(draws, method="split"), nested_rhat=nested)
    return dict(name=name, **{k: v for k, v in fields.items()}, last_draw=draws[-1, -1],
                expected={k: number(v) for k, v in expected.items()})


def main():
    target = pathlib.Path(__file__).with_name("arviz_fixtures.json")
    made = [fixture(name, dict(fields, seed=i + 1)) for i, (name, fields) in enumerate(cases())]
    lines = ",\n    ".join(json.dumps(entry) for entry in made)
    header = json.dumps(dict(arviz=arviz.__version__, arviz_stats=arviz_stats.__version__, defaults=DEFAULTS))
    temporary = target.with_suffix(".tmp")
    temporary.write_text(header[:-1] + ',\n  "cases": [\n    ' + lines + "\n]}\n")
    os.replace(temporary, target)


if __name__ == "__main__":
    main()
