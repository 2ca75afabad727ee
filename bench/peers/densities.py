# SPDX-License-Identifier: Apache-2.0
"""lockstep's small targets in JAX, each in two forms.

`one` is the log density of one chain's state [row], as a user of JAX writes it, to be differentiated and mapped by JAX.
`columns` takes states [row][chain] and returns (values [chain], gradients [row][chain]) by hand: chains lie along the
vector lanes and sums over modes or units are matrix products. The two are the same function up to a constant and
rounding (`hmc_jax.py --check`). With pseudo-samples, both also give the chain's estimate of E x, which is the state
itself elsewhere.
"""
import dataclasses
from pathlib import Path
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np

KOU = np.array([  # the means printed in Kou, Zhou & Wong (2006), Table 1
    (2.18, 5.76), (8.67, 9.59), (4.24, 8.48), (8.41, 1.68), (3.93, 8.82), (3.25, 3.47), (1.70, 0.50), (4.59, 5.60),
    (6.91, 5.81), (6.87, 5.40), (5.41, 2.65), (2.70, 7.88), (4.98, 3.70), (1.14, 2.39), (8.33, 9.50), (4.93, 1.50),
    (1.83, 0.09), (2.26, 0.31), (5.54, 6.86), (1.69, 8.11)])
EQUAL, SD = np.full(20, 1 / 20), 0.1  # scenario (a)


@dataclasses.dataclass
class Target:
    """`rows` of a state; starts are normal, of mean and sd `start`; `gradients` of the density in one of the state's;
    `options` of lockstep-bench for the same; `estimates`: both forms return (value, E x) where others return values."""
    name: str
    rows: int
    step: float
    one: Callable
    columns: Callable
    options: list
    start: tuple = (0.0, 1.0)
    truth: np.ndarray | None = None  # of E x
    gradients: int = 1
    estimates: bool = False
    unrolled: bool = True  # whether steps of `columns` gain by it


def normal(dim):
    return Target(f"normal, {dim} dimensions", dim, 0.5, lambda x: -0.5 * jnp.sum(x * x),
                  lambda x: (-0.5 * jnp.sum(x * x, axis=0), -x),
                  ["--target", "gaussian", "--dim", str(dim), "--sampler", "hmc"], truth=np.zeros(dim))


def mixture(means, weights, sd):
    """(one, columns). In `columns` x is squared once and not once a mode, -|x - m|^2 / 2 = x.m - |m|^2 / 2 - |x|^2 / 2,
    about the centre of the modes, where rounding is least; the sum over modes is one more row of the second product.
    """
    constant = np.log(weights) - means.shape[1] * np.log(sd * np.sqrt(2 * np.pi))
    centre = means.mean(axis=0)
    slopes = (means - centre) / sd**2
    offsets = constant - 0.5 * np.sum((means - centre) ** 2, axis=1) / sd**2
    users_means, users_constant = jnp.asarray(means), jnp.asarray(constant)

    def one(x):
        return jax.nn.logsumexp(users_constant - 0.5 * jnp.sum((x - users_means) ** 2, axis=1) / sd**2)

    with_ones = np.vstack([slopes.T, np.ones(len(slopes))])

    def columns(x):
        z = x - jnp.asarray(centre, x.dtype)[:, None]
        l = jnp.asarray(slopes, x.dtype) @ z + jnp.asarray(offsets, x.dtype)[:, None]
        top = l.max(axis=0)
        sums = jnp.asarray(with_ones, x.dtype) @ jnp.exp(l - top)
        value = top + jnp.log(sums[-1]) - (0.5 / sd**2) * jnp.sum(z * z, axis=0)
        return value, sums[:-1] / sums[-1] - z / sd**2
    return one, columns


def two_modes(dim):
    means = np.zeros((2, dim))
    means[:, 0] = 4, -4
    return Target(f"two_modes, {dim} dimensions", dim, 0.4, *mixture(means, np.array([0.7, 0.3]), 1.0),
                  ["--target", "two_modes", "--dim", str(dim), "--sampler", "hmc"])


def mixture20():
    return Target("mixture20", 2, 0.05, *mixture(KOU, EQUAL, SD), ["--target", "mixture20", "--sampler", "hmc"],
                  start=(5.0, 3.0), unrolled=False)


def pseudo_extended(n):
    """Of mixture20, with base N(5, 3^2 I). Rows of a state: x1 of all pseudo-samples, x2 of all, logits of beta."""
    target, target_columns = mixture(KOU, EQUAL, SD)
    base_constant = -2 * np.log(3 * np.sqrt(2 * np.pi))

    def one(state):
        x, u = state[:2 * n].reshape(2, n), state[2 * n:]
        l, b = jax.vmap(target, in_axes=1)(x), base_constant - 0.5 * jnp.sum((x - 5) ** 2, axis=0) / 9
        beta = jax.nn.sigmoid(u)
        d = (1 - beta) * (l - b)
        prior = jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u)
        return jax.nn.logsumexp(d) + jnp.sum(beta * l + (1 - beta) * b + prior), x @ jax.nn.softmax(d)

    def columns(state):
        x, u = state[:2 * n].reshape(2, n, -1), state[2 * n:]
        l, of_l = target_columns(x.reshape(2, -1))
        l, of_l = l.reshape(n, -1), of_l.reshape(x.shape)
        b, of_b = base_constant - jnp.sum((x - 5) ** 2, axis=0) / 18, (5 - x) / 9
        beta, rest = jax.nn.sigmoid(u), jax.nn.sigmoid(-u)
        d = rest * (l - b)
        top = d.max(axis=0)
        e = jnp.exp(d - top)
        total = e.sum(axis=0)
        w = e / total
        value = top + jnp.log(total) + jnp.sum(beta * l + rest * b + jnp.log(beta * rest), axis=0)
        of_x = (w * rest + beta) * of_l + rest * (1 - w) * of_b
        of_u = beta * rest * (1 - w) * (l - b) + rest - beta
        return (value, jnp.sum(w * x, axis=1)), jnp.concatenate([of_x.reshape(2 * n, -1), of_u])
    return Target(f"mixture20, pe N={n}", 3 * n, 0.1, one, columns,
                  ["--target", "mixture20", "--sampler", "pe", "--pseudo-samples", str(n), "--set",
                   "sampler.base_mean=5", "--set", "sampler.base_sd=3", "--set", "sampler.scale_u=1"],
                  start=(5.0, 3.0), truth=KOU.mean(axis=0), gradients=n, estimates=True,
                  unrolled=False)


def relaxation(folder):
    """(Q [unit][row], b, eigenvalues [row]) of a machine: W + diag(D) = Q Q', its positive eigenvalues rising."""
    w, b, d = (np.loadtxt(Path(folder) / name, delimiter=",") for name in ("weights.csv", "biases.csv", "D_sdp.csv"))
    values, vectors = np.linalg.eigh(w + np.diag(d))
    keep = values > 1e-6 * values.max()
    return vectors[:, keep] * np.sqrt(values[keep]), b, values[keep]


def boltzmann(folder):
    q, bias, _ = relaxation(folder)
    users_q, users_bias = jnp.asarray(q), jnp.asarray(bias)

    def one(x):
        y = jnp.abs(users_q @ x + users_bias)
        return jnp.sum(y + jnp.log1p(jnp.exp(-2 * y))) - 0.5 * jnp.sum(x * x)

    def columns(x):
        m = jnp.asarray(q, x.dtype)
        y = m @ x + jnp.asarray(bias, x.dtype)[:, None]
        t = jnp.tanh(y)
        size = jnp.abs(y)
        value = jnp.sum(size + jnp.log1p(jnp.exp(-2 * size)), axis=0) - 0.5 * jnp.sum(x * x, axis=0)
        return value, m.T @ t - x
    return Target(f"boltzmann, {len(bias)} units, {q.shape[1]} dimensions", q.shape[1], 0.2, one, columns,
                  ["--target", "boltzmann", "--data", str(folder), "--sampler", "hmc"])


def difference(target):
    """The largest relative difference between the gradients of the two forms, at random states."""
    x = target.start[0] + target.start[1] * jax.random.normal(jax.random.key(5), (256, target.rows))
    by_jax = jax.vmap(jax.grad(target.one, has_aux=target.estimates))(x)
    by_jax = by_jax[0] if target.estimates else by_jax
    by_hand = target.columns(x.T)[1].T
    return float((jnp.linalg.norm(by_jax - by_hand, axis=1) / jnp.linalg.norm(by_jax, axis=1)).max())
