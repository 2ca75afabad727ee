#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tempering_references.hpp: the functions of host/ and kernels/tempering.hpp in 60 digits. Needs mpmath 1.3.

    python3 tests/support/make_tempering_references.py && clang-format -i tests/support/tempering_references.hpp
"""

import pathlib

import mpmath

mpmath.mp.dps = 60

SIZES = [f"{m}e{e}" for e in range(-12, 5) for m in (1, 3)] + ["1e5", "80", "88", "89", "670", "708", "712", "746"]
RATES = ["1e-12", "1e-3", "1", "30", "700", "1e4", "1e5"]
UNIFORMS = ["1e-12", "0.01", "0.5", "0.99", "0.999999999"]


def number(x):
    # Numbers below the smallest normal double are 0 in the table; the tests compare them absolutely.
    return mpmath.nstr(x if x == 0 or abs(x) > mpmath.mpf("2.3e-308") else mpmath.mpf(0), 20)


def w1(delta):
    return delta / mpmath.expm1(delta)


def beta(delta, v):
    """Inverse of the distribution function, of 1 - beta for delta < 0."""
    a = abs(delta)
    b = -mpmath.log1p(v * mpmath.expm1(-a)) / a
    return b if delta > 0 else 1 - b


def main():
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        "#pragma once",
        "// Written by make_tempering_references.py.",
        "namespace lockstep::testing {",
        "struct TemperingReference { double delta, w0, w1, log_w0, log_w1; };",
        "inline constexpr TemperingReference tempering_references[] = {",
    ]
    for size in SIZES:
        for sign in (1, -1):
            # The arguments are doubles: the table is of what the function sees.
            delta = sign * mpmath.mpf(float(size))
            values = [w1(-delta), w1(delta), mpmath.log(w1(-delta)), mpmath.log(w1(delta))]
            lines.append("{%s}," % ", ".join([number(delta)] + [number(v) for v in values]))
    lines += [
        "};",
        "struct ExponentialReference { double delta, v, beta; };",
        "inline constexpr ExponentialReference exponential_references[] = {",
    ]
    for rate in RATES:
        for uniform in UNIFORMS:
            for sign in (1, -1):
                delta, v = sign * mpmath.mpf(float(rate)), mpmath.mpf(float(uniform))
                lines.append("{%s, %s, %s}," % (number(delta), number(v), number(beta(delta, v))))
    lines += ["};", "}  // namespace lockstep::testing", ""]
    pathlib.Path(__file__).with_name("tempering_references.hpp").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
