"""A variational autoencoder of images: functions of parameters and tensors.

Kingma and Welling, "Auto-encoding variational Bayes", 2014.
"""

from __future__ import annotations

from typing import Any

import tensorplug as tp

Layer = dict[str, tp.Tensor]
Parameters = dict[str, Layer]

PIXELS, HIDDEN, LATENT = 64, 128, 2  # two latent numbers, so that they can be drawn
OPTIMIZER = tp.train.adam(2e-3)


def initial_parameters(key: tp.Tensor) -> Parameters:
    """Draw weights with variance ``1 / fan-in``; biases start at zero."""
    sizes = {
        "seen": (PIXELS, HIDDEN),
        "mean": (HIDDEN, LATENT),
        "log_variance": (HIDDEN, LATENT),
        "imagined": (LATENT, HIDDEN),
        "drawn": (HIDDEN, HIDDEN),
        "pixels": (HIDDEN, PIXELS),
    }
    keys = tp.random.split(key, len(sizes))
    return {
        name: {
            "weights": tp.random.normal(keys[at], size, scale=size[0] ** -0.5),
            "bias": tp.zeros((size[1],)),
        }
        for at, (name, size) in enumerate(sizes.items())
    }


def dense(p: Layer, x: tp.Tensor) -> tp.Tensor:
    """Return ``x @ weights + bias``."""
    return x @ p["weights"] + p["bias"]


def encode(p: Parameters, images: tp.Tensor) -> tuple[tp.Tensor, tp.Tensor]:
    """Return q(z | image): means and logarithms of variances [n, LATENT] of normal variables."""
    h = tp.nn.relu(dense(p["seen"], images))
    return dense(p["mean"], h), dense(p["log_variance"], h)


def decode(p: Parameters, z: tp.Tensor) -> tp.Tensor:
    """Return p(image | z): the logits [n, PIXELS] of ink in each pixel."""
    h = tp.nn.relu(dense(p["imagined"], z))
    h = tp.nn.relu(dense(p["drawn"], h))
    return dense(p["pixels"], h)


def divergence(mean: tp.Tensor, log_variance: tp.Tensor) -> tp.Tensor:
    """Return how far q(z | image) is from the standard normal distribution, in nats, [n].

    It is the Kullback-Leibler divergence (Kingma and Welling, appendix B).
    """
    return tp.sum(tp.square(mean) + tp.exp(log_variance) - 1 - log_variance, axis=-1) / 2


def negative_elbo(p: Parameters, key: tp.Tensor, images: tp.Tensor) -> tp.Tensor:
    """Return minus the evidence lower bound, in nats per image, from one draw of each z.

    The bound: log p(image) >= E[log p(image | z)] - KL(q(z | image) || N(0, 1)). The brightness
    of a pixel, 0 to 1, is the probability that it is ink.
    """
    mean, log_variance = encode(p, images)
    # The draw is a function of mean and variance, and of noise that depends on neither: so
    # gradients pass through it (the reparameterization).
    z = mean + tp.exp(log_variance / 2) * tp.random.normal(key, mean.shape)
    of_pixels = tp.losses.sigmoid_cross_entropy(images, decode(p, z), reduction="none")
    return tp.mean(tp.sum(of_pixels, axis=-1) + divergence(mean, log_variance))


def train(
    p: Parameters, state: Any, keys: tp.Tensor, batches: tp.Tensor
) -> tuple[Parameters, Any, tp.Tensor]:
    """Take one step for each of ``batches`` [steps, n, PIXELS], with a key for each.

    Returns:
        Parameters and optimizer's state after all steps, and the losses [steps] before each.

    """

    def step(carry: Any, given: tuple[tp.Tensor, tp.Tensor]) -> tuple[Any, tp.Tensor]:
        p, state = carry
        key, images = given
        value, gradients = tp.value_and_grad(negative_elbo)(p, key, images)
        return OPTIMIZER.step(gradients, state, p), value

    (p, state), losses = tp.scan(step, (p, state), (keys, batches))
    return p, state, losses
