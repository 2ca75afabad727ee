#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the small decoder of the tests: a variational autoencoder of simulated 8 x 8 images of 0 and 1.

    python3 bench/data/train_decoder.py OUT.npz

OUT.npz: decoder 4-16-64 and encoder 64-16-(4 means, 4 log standard deviations), tanh in the middle, float32
[in][out], under the names that target decoder reads. OUT_images.npy: 200 images it was not trained on, uint8
[200][8][8]. tests/data/small_decoder.npz and small_images.npy were made by it (as small.npz, then renamed).
The seed is fixed: with the same NumPy on the same machine the files are the same to the bit.
"""
import os
import sys

for threads in "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS":
    os.environ[threads] = "1"  # sums in one order; read when numpy is imported
import numpy as np

SIDE, LATENT, HIDDEN = 8, 4, 16
PIXELS = SIDE * SIDE
STEPS, BATCH, RATE = 12000, 200, 0.005


def simulate(random, count):
    """A horizontal bar, a vertical bar or a blob, anywhere; then 5 % of the pixels flipped."""
    row, column = np.mgrid[:SIDE, :SIDE]
    r, c = random.uniform(0.5, SIDE - 1.5, (2, count, 1, 1))
    shapes = np.stack([abs(row - r) < 1, abs(column - c) < 1, np.hypot(row - r, column - c) < 2.2])
    images = shapes[random.integers(3, size=count), np.arange(count)]
    return images ^ (random.random(images.shape) < 0.05)


def initial_weights(random):
    p = {}
    for name, inputs, outputs in (("decoder_{}0", LATENT, HIDDEN), ("decoder_{}2", HIDDEN, PIXELS),
                                  ("encoder_h_{}0", PIXELS, HIDDEN), ("encoder_mean_{}0", HIDDEN, LATENT),
                                  ("encoder_std_{}0", HIDDEN, LATENT)):
        p[name.format("W")] = random.normal(0, inputs ** -0.5, (inputs, outputs))
        p[name.format("b")] = np.zeros(outputs)
    return p


def elbo(p, x, noise):
    """Mean lower bound of log p(x) over images x [image][pixel], with z = mean + sd noise, and its gradient."""
    h = np.tanh(x @ p["encoder_h_W0"] + p["encoder_h_b0"])
    mean = h @ p["encoder_mean_W0"] + p["encoder_mean_b0"]
    log_sd = h @ p["encoder_std_W0"] + p["encoder_std_b0"]
    sd = np.exp(log_sd)
    z = mean + sd * noise
    g = np.tanh(z @ p["decoder_W0"] + p["decoder_b0"])
    y = g @ p["decoder_W2"] + p["decoder_b2"]
    divergence = 0.5 * (mean ** 2 + sd ** 2 - 1) - log_sd  # of N(mean, sd^2) from N(0, 1)
    value = ((x * y - np.logaddexp(0, y)).sum() - divergence.sum()) / len(x)

    d = {}

    def back(layer, below, error):
        """The gradient of a layer's weights, and that with respect to what comes in."""
        d[layer.format("W")] = below.T @ error
        d[layer.format("b")] = error.sum(0)
        return error @ p[layer.format("W")].T

    error = (x - 1 / (1 + np.exp(-y))) / len(x)
    error = back("decoder_{}2", g, error) * (1 - g ** 2)
    error_z = back("decoder_{}0", z, error)
    error = back("encoder_mean_{}0", h, error_z - mean / len(x))
    error += back("encoder_std_{}0", h, error_z * sd * noise - (sd ** 2 - 1) / len(x))
    back("encoder_h_{}0", x, error * (1 - h ** 2))
    return value, d


def train(random):
    p = initial_weights(random)
    first, second = ({k: np.zeros_like(v) for k, v in p.items()} for _ in range(2))
    recent = []
    for step in range(1, STEPS + 1):
        x = simulate(random, BATCH).reshape(BATCH, PIXELS).astype(float)
        value, d = elbo(p, x, random.normal(size=(BATCH, LATENT)))
        rate = RATE * min(1, 2 - 2 * (step - 1) / STEPS)  # down to nothing over the second half
        for k in p:  # Adam (Kingma & Ba 2015)
            first[k] += 0.1 * (d[k] - first[k])
            second[k] += 0.001 * (d[k] ** 2 - second[k])
            p[k] += rate * first[k] / (1 - 0.9 ** step) / (np.sqrt(second[k] / (1 - 0.999 ** step)) + 1e-8)
        recent.append(value)
        if step % (STEPS // 10) == 0:
            print(f"step {step}: ELBO {np.mean(recent):.3f} nats an image", flush=True)
            recent = []
    return p


def main():
    if len(sys.argv) != 2 or not sys.argv[1].endswith(".npz"):
        sys.exit(__doc__.strip())
    p = train(np.random.default_rng(1))
    random = np.random.default_rng(2)
    images = simulate(random, 200)
    x = np.repeat(images.reshape(200, PIXELS).astype(float), 50, axis=0)
    print(f"200 other images: ELBO {elbo(p, x, random.normal(size=(len(x), LATENT)))[0]:.3f} nats an image")
    np.savez(sys.argv[1], **{k: v.astype(np.float32) for k, v in p.items()})
    np.save(sys.argv[1].removesuffix(".npz") + "_images.npy", images.astype(np.uint8))


if __name__ == "__main__":
    main()
