"""A variational autoencoder of images: functions of parameters and tensors.

Kingma and Welling, "Auto-encoding variational Bayes", 2014.
"""

from __future__ import annotations

from dataclasses import dataclass

import tensorplug as tp

PIXELS, HIDDEN, LATENT = 64, 128, 2  # two latent numbers, so that they can be drawn
OPTIMIZER = tp.train.adam(2e-3)
Linear = tp.train.layers.Linear


@dataclass(frozen=True)
class Autoencoder:
    """An encoder of two layers, whose last one gives means and variances, and a decoder."""

    seen: tp.train.layers.Linear
    mean: tp.train.layers.Linear
    log_variance: tp.train.layers.Linear
    imagined: tp.train.layers.Linear
    drawn: tp.train.layers.Linear
    pixels: tp.train.layers.Linear

    @classmethod
    def init(cls, key: tp.Tensor) -> Autoencoder:
        """Draw weights with variance ``1 / fan-in``; biases start at zero."""
        sizes = [
            (PIXELS, HIDDEN),
            (HIDDEN, LATENT),
            (HIDDEN, LATENT),
            (LATENT, HIDDEN),
            (HIDDEN, HIDDEN),
            (HIDDEN, PIXELS),
        ]
        draw = tp.train.initializers.lecun_normal
        keys = tp.random.split(key, len(sizes))
        return cls(
            *(Linear.init(keys[at], *size, weight_init=draw) for at, size in enumerate(sizes))
        )

    def encode(self, images: tp.Tensor) -> tuple[tp.Tensor, tp.Tensor]:
        """Return q(z | image): means and logarithms of variances, [n, LATENT] each."""
        h = tp.nn.relu(self.seen(images))
        return self.mean(h), self.log_variance(h)

    def decode(self, z: tp.Tensor) -> tp.Tensor:
        """Return p(image | z): the logits [n, PIXELS] of ink in each pixel."""
        return self.pixels(tp.nn.relu(self.drawn(tp.nn.relu(self.imagined(z)))))


def divergence(mean: tp.Tensor, log_variance: tp.Tensor) -> tp.Tensor:
    """Return how far q(z | image) is from the standard normal distribution, in nats, [n].

    It is the Kullback-Leibler divergence (Kingma and Welling, appendix B).
    """
    return tp.sum(tp.square(mean) + tp.exp(log_variance) - 1 - log_variance, axis=-1) / 2


def negative_elbo(model: Autoencoder, images: tp.Tensor, key: tp.Tensor) -> tp.Tensor:
    """Return minus the evidence lower bound, in nats per image, from one draw of each z.

    The bound: log p(image) >= E[log p(image | z)] - KL(q(z | image) || N(0, 1)). The brightness
    of a pixel, 0 to 1, is the probability that it is ink.
    """
    mean, log_variance = model.encode(images)
    # The draw is a function of mean and variance, and of noise that depends on neither: so
    # gradients pass through it (the reparameterization).
    z = mean + tp.exp(log_variance / 2) * tp.random.normal(key, mean.shape)
    of_pixels = tp.losses.sigmoid_cross_entropy(images, model.decode(z), reduction="none")
    return tp.mean(tp.sum(of_pixels, axis=-1) + divergence(mean, log_variance))
