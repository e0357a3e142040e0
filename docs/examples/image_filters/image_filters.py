"""Filters of images [height, width, channels]: convolution, Fourier transform, gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp

if TYPE_CHECKING:
    from numpy.typing import NDArray


SOBEL = np.outer([1, 2, 1], [1, 0, -1]).astype(np.float32) / 8  # a slope along rows
SMOOTHNESS = 2e-3  # weight of the total variation, where noise has a deviation of about 0.01


def gaussian(sigma: float) -> NDArray[np.float32]:
    """Return a bell [n, n] with sum 1, cut off at three standard deviations."""
    steps = np.arange(-int(3 * sigma + 0.5), int(3 * sigma + 0.5) + 1)
    bell = np.exp(-(steps**2) / (2 * sigma**2))
    bell /= bell.sum()
    return np.outer(bell, bell).astype(np.float32)


def shake(size: int = 21, samples: int = 400) -> NDArray[np.float32]:
    """Return what a shaking hand makes of a point of light, [size, size], with sum 1."""
    time = np.linspace(0, 1, samples)
    half = (size - 1) / 2
    across = half * (1 + 0.85 * np.cos(2.6 * time - 0.4) * (1 - 0.25 * time))
    down = half * (1 - 0.75 * np.cos(4.2 * time) + 0.2 * np.sin(9 * time))
    kernel = np.zeros((size, size))
    for x, y in zip(across, down, strict=True):
        column, row = int(x), int(y)
        shares = np.outer([row + 1 - y, y - row], [column + 1 - x, x - column])
        kernel[row : row + 2, column : column + 2] += shares
    kernel /= kernel.sum()
    return kernel.astype(np.float32)


def convolve(image: tp.Tensor, kernel: tp.Tensor) -> tp.Tensor:
    """Return the convolution of each channel with one kernel, where the kernel fits inside.

    The result is smaller than the image by the kernel's size less 1.
    """
    # What networks call a convolution does not turn the kernel around; mathematics does.
    taps = tp.flip(kernel)[:, :, None, None]
    per_channel = tp.broadcast_to(taps, (*kernel.shape, image.shape[-1], 1))
    return tp.nn.depthwise_conv2d(image, per_channel, pad="valid")


def convolve_by_fft(image: tp.Tensor, kernel: tp.Tensor) -> tp.Tensor:
    """Return the same as ``convolve``: a product of spectra is the spectrum of a convolution."""
    height, width = image.shape[:2]
    size = (height, width)
    spectrum = tp.fft.rfftn(image, axes=(0, 1)) * tp.fft.rfftn(kernel, s=size)[:, :, None]
    around = tp.fft.irfftn(spectrum, s=size, axes=(0, 1))
    # The image of a Fourier transform is periodic: the first rows and columns wrapped around.
    return around[kernel.shape[0] - 1 :, kernel.shape[1] - 1 :]


def widen(image: tp.Tensor, by: int) -> tp.Tensor:
    """Return the image with ``by`` more pixels on every side, which repeat those at the edge."""
    return tp.pad(image, [(by, by), (by, by), (0, 0)], mode="edge")


def blur(image: tp.Tensor, sigma: float) -> tp.Tensor:
    """Return the image smoothed by a bell."""
    bell = tp.asarray(gaussian(sigma))
    return convolve(widen(image, bell.shape[0] // 2), bell)


def edges(image: tp.Tensor) -> tp.Tensor:
    """Return how steep the brightness is, [height, width], by Sobel's two kernels."""
    gray = widen(tp.mean(image, axis=-1, keepdims=True), 1)
    across, down = (convolve(gray, tp.asarray(k)) for k in (SOBEL, SOBEL.T))
    return tp.hypot(across, down)[:, :, 0]


def sharpen(image: tp.Tensor, sigma: float = 1.5, amount: float = 1.5) -> tp.Tensor:
    """Return the image plus a multiple of what a blur takes away: the unsharp mask."""
    return image + amount * (image - blur(image, sigma))


def frequencies(height: int, width: int) -> tp.Tensor:
    """Return the frequency of each element of ``rfftn``, in cycles per pixel."""
    return tp.hypot(tp.fft.fftfreq(height)[:, None], tp.fft.rfftfreq(width))


def low_pass(image: tp.Tensor, cutoff: float) -> tp.Tensor:
    """Return the image without frequencies far above ``cutoff``: Butterworth's filter."""
    height, width = image.shape[:2]
    gain = 1 / (1 + (frequencies(height, width) / cutoff) ** 4)
    spectrum = tp.fft.rfftn(image, axes=(0, 1)) * gain[:, :, None]
    return tp.fft.irfftn(spectrum, s=(height, width), axes=(0, 1))


def high_pass(image: tp.Tensor, cutoff: float) -> tp.Tensor:
    """Return the rest: the image without frequencies far below ``cutoff``."""
    return image - low_pass(image, cutoff)


def spectrum(image: tp.Tensor) -> tp.Tensor:
    """Return magnitudes [height, width] of the spectrum, with frequency 0 in the middle."""
    gray = tp.mean(image, axis=-1)
    return tp.fft.fftshift(tp.abs(tp.fft.fftn(gray - tp.mean(gray))))


def wiener(photo: tp.Tensor, kernel: tp.Tensor, noise: float = 0.01) -> tp.Tensor:
    """Return the photo deblurred in the frequency domain, with ``noise`` as noise over signal.

    Division by the kernel's spectrum would undo the blur, and multiply the noise without bound
    where the spectrum is near 0. Wiener's filter is the best compromise that is linear (Wiener,
    "Extrapolation, interpolation, and smoothing of stationary time series", 1949).
    """
    margin = kernel.shape[0]
    wide = tp.pad(photo, [(margin, margin), (margin, margin), (0, 0)], mode="symmetric")
    size = wide.shape[:2]
    # Roll the kernel's middle to the origin, so that the result stays where it is.
    centred = tp.pad(kernel, [(0, size[0] - margin), (0, size[1] - margin)])
    centred = tp.roll(centred, (-(margin // 2), -(margin // 2)), axis=(0, 1))
    response = tp.fft.rfftn(centred)
    gain = tp.conj(response) / (tp.square(tp.abs(response)) + noise)
    spectrum = tp.fft.rfftn(wide, axes=(0, 1)) * gain[:, :, None]
    restored = tp.fft.irfftn(spectrum, s=size, axes=(0, 1))
    return restored[margin:-margin, margin:-margin]


def total_variation(image: tp.Tensor) -> tp.Tensor:
    """Return the sum of the lengths of the brightness' gradient: small for flat areas with edges.

    Source: Rudin, Osher and Fatemi, "Nonlinear total variation based noise removal", 1992.
    """
    across = image[:-1, 1:] - image[:-1, :-1]
    down = image[1:, :-1] - image[:-1, :-1]
    # The number under the root makes it differentiable where both slopes are 0.
    return tp.sum(tp.sqrt(tp.sum(tp.square(across) + tp.square(down), axis=-1) + 1e-6))


def misfit(image: tp.Tensor, photo: tp.Tensor, kernel: tp.Tensor) -> tp.Tensor:
    """Return how badly the image, seen through a shaking camera, explains the photo."""
    error = convolve_by_fft(image, kernel) - photo
    return tp.sum(tp.square(error)) / 2 + SMOOTHNESS * total_variation(image)


def deblur(photo: tp.Tensor, kernel: tp.Tensor, steps: int) -> tuple[tp.Tensor, tp.Tensor]:
    """Find the image that explains the photo best, by Adam, from Wiener's result.

    Returns:
        The image, larger than the photo by what the camera saw beyond it; the misfits [steps].

    """
    optimizer = tp.train.adam(tp.train.cosine_decay(0.03, max(steps, 1)))

    def step(carry: Any, _: None) -> tuple[Any, tp.Tensor]:
        image, state = carry
        value, gradient = tp.value_and_grad(misfit)(image, photo, kernel)
        image, state = optimizer.step(gradient, state, image)
        return (tp.clip(image, 0.0, 1.0), state), value

    image = tp.clip(widen(wiener(photo, kernel), kernel.shape[0] // 2), 0.0, 1.0)
    (image, _), misfits = tp.scan(step, (image, optimizer.init(image)), length=steps)
    return image, misfits
