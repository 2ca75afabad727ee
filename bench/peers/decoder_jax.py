#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gradients per second of a decoder's log posterior by JAX, beside lockstep's target `decoder`.

    python3 bench/peers/decoder_jax.py FOLDER

z ~ N(0, I), pixels ~ Bernoulli(sigmoid(decoder(z))). FOLDER holds decoder_W0.npy, decoder_b0.npy, decoder_W2.npy, ...:
weights (in, out), biases (1, out), tanh between the layers. The images are drawn from the model itself; every image
has the same number of runs. float32, on the device that JAX finds. Two rates, each the best of five after a warm-up:

    scan    leapfrog steps, one gradient each, in one jitted lax.scan: the gradients are what counts
    calls   the same number of jit(vmap(grad)) called one after another from Python, without waiting between them

Prints JSON. `error` is the largest relative error of a chain's gradient against the formula in double precision;
`cores` are seconds of processor time per second: below `threads` where other programs took their share.
"""
import argparse
import functools
import json
import os
import platform
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

REPEATS, MOST_STEPS, STEP_SIZE = 5, 1000, 0.01


def read_layers(folder):
    """[(W, b)] in the order of their numbers."""
    numbers = sorted(int(path.stem.removeprefix("decoder_W")) for path in folder.glob("decoder_W*.npy"))
    if not numbers:
        sys.exit(f"{folder} has no decoder_W0.npy (the weights are read from it). Give the folder of the decoder")
    return [tuple(np.load(folder / f"decoder_{kind}{n}.npy").astype(np.float32) for kind in "Wb") for n in numbers]


def logits(layers, z):
    for w, b in layers[:-1]:
        z = jnp.tanh(z @ w + b[0])
    w, b = layers[-1]
    return z @ w + b[0]


def log_posterior(layers, z, x):
    """Up to a constant, for one chain."""
    y = logits(layers, z)
    return jnp.sum(x * y - jax.nn.softplus(y)) - 0.5 * jnp.sum(z * z)


def gradient_of(layers):
    """(z [image][run][latent], x [image][pixel]) -> gradients as z."""
    one = jax.grad(functools.partial(log_posterior, layers))
    return jax.vmap(jax.vmap(one, in_axes=(0, None)))


def leapfrog(gradient, steps):
    """Kicks and drifts by turns: as many gradients as steps."""
    def step(state, _):
        z, p, x = state
        p = p + STEP_SIZE * gradient(z, x)
        return (z + STEP_SIZE * p, p, x), None
    return jax.jit(lambda z, p, x: jax.lax.scan(step, (z, p, x), length=steps)[0][:2])


def exact_gradient(layers, z, x):
    """The formula in double precision."""
    z, x = z.astype(float), x.astype(float)
    layers = [(w.astype(float), b[0].astype(float)) for w, b in layers]
    hidden = [z]
    for w, b in layers[:-1]:
        hidden.append(np.tanh(hidden[-1] @ w + b))
    w, b = layers[-1]
    g = (x[:, None, :] - 1 / (1 + np.exp(-(hidden[-1] @ w + b)))) @ w.T
    for (w, _), h in zip(layers[-2::-1], hidden[:0:-1]):
        g = (g * (1 - h**2)) @ w.T
    return g - z


def best_seconds(work):
    """(seconds, cores that it had on average in them), after one call that compiles and warms up."""
    jax.block_until_ready(work())
    best = []
    for _ in range(REPEATS):
        start, processor = time.perf_counter(), time.process_time()
        jax.block_until_ready(work())
        seconds = time.perf_counter() - start
        best.append((seconds, (time.process_time() - processor) / seconds))
    return min(best)


def rates(layers, images, runs, gradients):
    rng = np.random.default_rng(1)
    latent = layers[0][0].shape[0]
    means = jax.nn.sigmoid(logits(layers, rng.normal(size=(images, latent)).astype(np.float32)))
    x = jnp.asarray(rng.uniform(size=means.shape) < means, dtype=jnp.float32)
    z, p = (jnp.asarray(rng.normal(size=(images, runs, latent)), dtype=jnp.float32) for _ in range(2))
    steps = max(1, min(MOST_STEPS, gradients // (images * runs)))

    gradient = jax.jit(gradient_of(layers))
    exact = exact_gradient(layers, np.asarray(z), np.asarray(x))
    error = np.linalg.norm(np.asarray(gradient(z, x)) - exact, axis=2) / np.linalg.norm(exact, axis=2)

    trajectory = leapfrog(gradient_of(layers), steps)
    if not all(bool(jnp.isfinite(end).all()) for end in trajectory(z, p, x)):
        sys.exit("a trajectory left the finite numbers (its rate would mean nothing). Check the weights")
    by_scan, scan_cores = best_seconds(lambda: trajectory(z, p, x))
    by_calls, calls_cores = best_seconds(lambda: [gradient(z, x) for _ in range(steps)])
    chains = images * runs
    return {"chains": chains, "images": images, "runs": runs, "steps": steps, "error": float(f"{error.max():.2g}"),
            "scan_gradients_per_s": round(chains * steps / by_scan), "scan_cores": round(scan_cores, 2),
            "calls_gradients_per_s": round(chains * steps / by_calls), "calls_cores": round(calls_cores, 2)}


def device_name():
    """The accelerator's, or the processor's name."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        return device.device_kind
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main():
    parser = argparse.ArgumentParser(description="Gradients per second of a decoder's log posterior by JAX.")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the folder of the decoder's weights")
    parser.add_argument("--chains", type=int, nargs="+", default=[96, 384, 1600, 6400], help="images times runs")
    parser.add_argument("--runs", type=int, default=16, help="chains of one image (16)")
    parser.add_argument("--gradients", type=int, default=300000, help="in one measurement, about (300000)")
    parser.add_argument("--precision", default="highest", choices=["highest", "high", "default"],
                        help="of products of matrices: highest is float32; the others may round more on accelerators")
    options = parser.parse_args()
    if options.runs < 1 or any(chains < options.runs or chains % options.runs for chains in options.chains):
        parser.error("--chains are not multiples of --runs (every image has the same number of runs)")
    jax.config.update("jax_default_matmul_precision", options.precision)
    layers = read_layers(options.folder)
    measured = [rates(layers, chains // options.runs, options.runs, options.gradients) for chains in options.chains]
    print(json.dumps({
        "what": "gradients of a decoder's log posterior, best of five",
        "layers": [layers[0][0].shape[0], *(w.shape[1] for w, _ in layers)],
        "platform": jax.devices()[0].platform, "device": device_name(), "threads": len(os.sched_getaffinity(0)),
        "jax": jax.__version__, "precision": options.precision, "rates": measured}, indent=2))


if __name__ == "__main__":
    main()
