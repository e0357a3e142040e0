"""SciPy's signal processing on tensors, with SCIPY_ARRAY_API=1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tensorplug as tp

from .clients import DTYPES, Given, by_views, compare, names, require_scipy_switch

if TYPE_CHECKING:
    from .clients import Call

pytest.importorskip("scipy")
require_scipy_switch()

from scipy import signal  # noqa: E402  # not before the switch was seen
from scipy.signal import windows  # noqa: E402

PLAIN = names("""
barthann bartlett blackman blackmanharris bohman boxcar cosine exponential flattop hamming hann
lanczos nuttall parzen triang tukey taylor
""")
WINDOWS: dict[str, Call] = {
    **{
        f"windows.{name}": lambda g, name=name: getattr(windows, name)(17, sym=False, xp=g.xp)
        for name in PLAIN
    },
    "windows.chebwin": lambda g: windows.chebwin(17, 60, xp=g.xp),
    "windows.gaussian": lambda g: windows.gaussian(17, 3, xp=g.xp),
    "windows.general_cosine": lambda g: windows.general_cosine(17, g.array([1.0, 0.5])),
    "windows.general_gaussian": lambda g: windows.general_gaussian(17, 1.5, 3, xp=g.xp),
    "windows.general_hamming": lambda g: windows.general_hamming(17, 0.6, xp=g.xp),
    "windows.kaiser": lambda g: windows.kaiser(17, 5, xp=g.xp),
    "windows.kaiser_bessel_derived": lambda g: windows.kaiser_bessel_derived(18, 5, xp=g.xp),
    "get_window": lambda g: signal.get_window(("kaiser", 4.0), 9, xp=g.xp),
}


def _taps(g):
    return g.array([0.2, 0.3, 0.1]), g.array([1.0, -0.4, 0.1])


def _sections(g):
    return g.array(signal.butter(4, 0.2, output="sos"))


def _poles(g):
    return g.array([0.5, -0.2]), g.array([0.3, 0.1]), 0.7


def _both(g):
    return g.image, g.square


SIGNAL: dict[str, Call] = {
    "bilinear": lambda g: signal.bilinear(*_taps(g), fs=2.0),
    "bilinear_zpk": lambda g: signal.bilinear_zpk(*_poles(g), 2.0),
    "convolve": lambda g: signal.convolve(g.sample, g.v[:7]),
    "convolve same, direct": lambda g: signal.convolve(g.sample, g.v[:7], "same", "direct"),
    "convolve2d": lambda g: signal.convolve2d(*_both(g)),
    "correlate": lambda g: signal.correlate(g.sample, g.v[:7]),
    "correlate2d": lambda g: signal.correlate2d(*_both(g), mode="valid"),
    "choose_conv_method": lambda g: signal.choose_conv_method(g.sample, g.v[:7]),
    "cspline1d": lambda g: signal.cspline1d(g.sample),
    "cspline1d_eval": lambda g: signal.cspline1d_eval(signal.cspline1d(g.sample), g.p[0, :] * 9),
    "deconvolve": lambda g: signal.deconvolve(g.array([1.0, 3.0, 5.0, 3.0]), g.array([1.0, 2.0])),
    "detrend": lambda g: signal.detrend(g.sample),
    "detrend constant": lambda g: signal.detrend(g.x, axis=0, type="constant"),
    "envelope": lambda g: signal.envelope(g.sample, (1, 10)),
    "fftconvolve": lambda g: signal.fftconvolve(g.sample, g.v),
    "fftconvolve 2d": lambda g: signal.fftconvolve(*_both(g), mode="same"),
    "filtfilt": lambda g: signal.filtfilt(*_taps(g), g.sample),
    "firls": lambda g: signal.firls(
        9, g.array([0.0, 0.3, 0.5, 1.0]), g.array([1.0, 1.0, 0.0, 0.0])
    ),
    "firwin": lambda g: signal.firwin(9, g.array([0.3])),
    "firwin2": lambda g: signal.firwin2(9, g.array([0.0, 0.5, 1.0]), g.array([1.0, 1.0, 0.0])),
    "freqs": lambda g: signal.freqs(*_taps(g), worN=g.p[0, :]),
    "freqs_zpk": lambda g: signal.freqs_zpk(*_poles(g), worN=g.p[0, :]),
    "freqz": lambda g: signal.freqz(*_taps(g), worN=g.p[0, :]),
    "freqz of a number": lambda g: signal.freqz(*_taps(g), worN=16),
    "freqz_sos": lambda g: signal.freqz_sos(_sections(g), worN=g.p[0, :]),
    "freqz_zpk": lambda g: signal.freqz_zpk(*_poles(g), worN=g.p[0, :]),
    "gauss_spline": lambda g: signal.gauss_spline(g.v, 3),
    "group_delay": lambda g: signal.group_delay(_taps(g), w=g.p[0, :]),
    "hilbert": lambda g: signal.hilbert(g.sample),
    "hilbert2": lambda g: signal.hilbert2(g.image),
    "lfilter": lambda g: signal.lfilter(*_taps(g), g.sample),
    "lfilter from a state": lambda g: signal.lfilter(*_taps(g), g.sample, zi=g.array([0.1, 0.2])),
    "lfilter_zi": lambda g: signal.lfilter_zi(*_taps(g)),
    "lfiltic": lambda g: signal.lfiltic(*_taps(g), g.array([0.3, 0.1])),
    "lp2lp": lambda g: signal.lp2lp(*_taps(g), 2.0),
    "lp2hp": lambda g: signal.lp2hp(*_taps(g), 2.0),
    "lp2bp": lambda g: signal.lp2bp(*_taps(g), 2.0, 0.5),
    "lp2bs": lambda g: signal.lp2bs(*_taps(g), 2.0, 0.5),
    "lp2lp_zpk": lambda g: signal.lp2lp_zpk(*_poles(g), 2.0),
    "lp2hp_zpk": lambda g: signal.lp2hp_zpk(*_poles(g), 2.0),
    "lp2bp_zpk": lambda g: signal.lp2bp_zpk(*_poles(g), 2.0, 0.5),
    "lp2bs_zpk": lambda g: signal.lp2bs_zpk(*_poles(g), 2.0, 0.5),
    "medfilt": lambda g: signal.medfilt(g.sample, 5),
    "medfilt2d": lambda g: signal.medfilt2d(g.image, 3),
    "minimum_phase": lambda g: signal.minimum_phase(g.array([0.1, 0.2, 0.4, 0.2, 0.1])),
    "normalize": lambda g: signal.normalize(g.array([2.0, 1.0]), g.array([4.0, 1.0])),
    "order_filter": lambda g: signal.order_filter(g.image, g.ints([[1] * 3] * 3), 2),
    "qspline1d": lambda g: signal.qspline1d(g.sample),
    "qspline1d_eval": lambda g: signal.qspline1d_eval(signal.qspline1d(g.sample), g.p[0, :] * 9),
    "remez": lambda g: signal.remez(
        9, g.array([0.0, 0.2, 0.3, 0.5]), g.array([1.0, 0.0]), weight=g.array([1.0, 2.0])
    ),
    "resample": lambda g: signal.resample(g.sample, 20),
    "resample_poly": lambda g: signal.resample_poly(g.sample, 3, 2),
    "resample_poly with taps": lambda g: signal.resample_poly(g.sample, 3, 2, window=_taps(g)[0]),
    "savgol_filter": lambda g: signal.savgol_filter(g.sample, 5, 2),
    "savgol_coeffs": lambda g: signal.savgol_coeffs(5, 2, xp=g.xp),
    "sos2tf": lambda g: signal.sos2tf(_sections(g)),
    "sos2zpk": lambda g: signal.sos2zpk(_sections(g)),
    "sosfilt": lambda g: signal.sosfilt(_sections(g), g.sample),
    "sosfilt_zi": lambda g: signal.sosfilt_zi(_sections(g)),
    "sosfiltfilt": lambda g: signal.sosfiltfilt(_sections(g), g.sample),
    "tf2sos": lambda g: signal.tf2sos(*_taps(g)),
    "tf2zpk": lambda g: g.xp.sort(g.xp.real(signal.tf2zpk(*_taps(g))[0])),
    "upfirdn": lambda g: signal.upfirdn(_taps(g)[0], g.sample, 2, 3),
    "vectorstrength": lambda g: signal.vectorstrength(g.sample, g.array(2.0)),
    "wiener": lambda g: signal.wiener(g.image, 3),
    "zpk2sos": lambda g: signal.zpk2sos(*_poles(g)),
    "zpk2tf": lambda g: signal.zpk2tf(*_poles(g)),
    **{
        name: lambda g, name=name: getattr(signal, name)(3, xp=g.xp)
        for name in names("buttap besselap")
    },
    "cheb1ap": lambda g: signal.cheb1ap(3, 1, xp=g.xp),
    "cheb2ap": lambda g: signal.cheb2ap(3, 20, xp=g.xp),
    "ellipap": lambda g: signal.ellipap(3, 1, 20, xp=g.xp),
    "butter": lambda g: signal.butter(3, g.array(0.3)),
    "cheby1": lambda g: signal.cheby1(3, 1, g.array(0.3)),
    "cheby2": lambda g: signal.cheby2(3, 20, g.array(0.3)),
    "ellip": lambda g: signal.ellip(3, 1, 20, g.array(0.3)),
    "bessel": lambda g: signal.bessel(3, g.array(0.3)),
    "buttord": lambda g: signal.buttord(g.array(0.2), g.array(0.3), 1, 20),
    "iirfilter": lambda g: signal.iirfilter(3, g.array([0.2, 0.4])),
    "iirnotch": lambda g: signal.iirnotch(0.3, 20, xp=g.xp),
    "iirpeak": lambda g: signal.iirpeak(0.3, 20, xp=g.xp),
    "iircomb": lambda g: signal.iircomb(0.25, 20, xp=g.xp),
}
TABLE = {**WINDOWS, **SIGNAL}
LOOSE = {
    "windows.taylor",
    "bilinear_zpk",
    "lp2hp_zpk",
    "wiener",
    "iirnotch",
    "iirpeak",
    "iircomb",
}
ONTO_HOST: dict[str, Call] = {
    "csd": lambda g: signal.csd(g.sample, g.other, nperseg=16),
    "find_peaks": lambda g: signal.find_peaks(g.sample)[0],
    "periodogram": lambda g: signal.periodogram(g.sample),
    "spectrogram": lambda g: signal.spectrogram(g.sample, nperseg=16),
    "stft": lambda g: signal.stft(g.sample, nperseg=16),
    "welch": lambda g: signal.welch(g.sample, nperseg=16),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TABLE)
def test_as_with_arrays(name, dtype):
    compare(TABLE[name], dtype, loose=name in LOOSE)


@pytest.mark.parametrize("name", ONTO_HOST)
def test_functions_that_scipy_runs_on_the_host(name):
    compare(ONTO_HOST[name], "float64", onto_host=True)


def test_functions_that_write_through_views():
    by_views(lambda g: signal.oaconvolve(g.sample, g.v[:7]))


def test_convolve_by_the_definition():
    g = Given(tp, "float64")
    convolved = signal.convolve(g.sample, g.v[:7], method="direct")
    np.testing.assert_allclose(convolved.numpy(), np.convolve(g.sample, g.v[:7]), rtol=1e-9)
