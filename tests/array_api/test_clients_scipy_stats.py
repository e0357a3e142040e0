"""SciPy's statistics on tensors, with SCIPY_ARRAY_API=1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from .clients import DTYPES, compare, names, require_scipy_switch

if TYPE_CHECKING:
    from .clients import Call

pytest.importorskip("scipy")
require_scipy_switch()

from scipy import special, stats  # noqa: E402  # not before the switch was seen

# Functions of one sample, or of each row of a matrix.
ONE = names("""
boxcox_llf chisquare circmean circstd circvar describe differential_entropy directional_stats
entropy gmean gstd gzscore hmean iqr jarque_bera kstat kstatvar kurtosis kurtosistest lmoment
median_abs_deviation mode moment normaltest power_divergence rankdata sem skew skewtest tmax
tmean tmin tsem tstd tvar variation yeojohnson_llf zscore
""")
TWO = names("""
ansari bartlett brunnermunzel cramervonmises_2samp epps_singleton_2samp f_oneway fligner
kruskal levene mannwhitneyu mood pearsonr spearmanrho ttest_ind ttest_rel wilcoxon zmap
alexandergovern chatterjeexi
""")


def _one(name, x, **how):
    function = getattr(stats, name)
    return function(0.5, x, **how) if name.endswith("_llf") else function(x, **how)


STATS: dict[str, Call] = {
    **{
        f"{name} of a sample": lambda g, name=name: _one(name, g.xp.abs(g.sample) + 0.1)
        for name in ONE
        if name != "directional_stats"
    },
    **{
        f"{name} of rows": lambda g, name=name: _one(
            name, g.xp.reshape(g.xp.abs(g.sample) + 0.1, (2, 25)), axis=1
        )
        for name in ONE
    },
    **{name: lambda g, name=name: getattr(stats, name)(g.sample, g.other) for name in TWO},
    **{
        f"{name} of rows": lambda g, name=name: getattr(stats, name)(
            g.xp.reshape(g.sample, (2, 25)), g.xp.reshape(g.other, (2, 25)), axis=1
        )
        for name in names(
            "f_oneway kruskal levene mannwhitneyu pearsonr ttest_ind ttest_rel wilcoxon"
        )
    },
    "chisquare against": lambda g: stats.chisquare(g.array([8.0, 12.0]), g.array([10.0, 10.0])),
    "combine_pvalues": lambda g: stats.combine_pvalues(g.array([0.1, 0.05, 0.02])),
    "combine_pvalues stouffer": lambda g: stats.combine_pvalues(
        g.array([0.1, 0.05, 0.02]), method="stouffer"
    ),
    "cramervonmises": lambda g: stats.cramervonmises(g.sample, special.ndtr),
    "entropy of two": lambda g: stats.entropy(g.x, g.x[::-1, :]),
    "false_discovery_control": lambda g: stats.false_discovery_control(g.p, axis=1),
    "friedmanchisquare": lambda g: stats.friedmanchisquare(g.sample, g.other, g.v),
    "ks_1samp": lambda g: stats.ks_1samp(g.sample, special.ndtr),
    "moment 3": lambda g: stats.moment(g.x**2, order=3, axis=None),
    "monte_carlo_test": lambda g: (
        stats.monte_carlo_test(
            g.sample,
            lambda size: g.array(np.random.default_rng(0).normal(size=size)),
            lambda x, axis: g.xp.mean(x, axis=axis),
            n_resamples=99,
            vectorized=True,
        ).pvalue
    ),
    "pmean": lambda g: stats.pmean(g.x, 2),
    "bootstrap": lambda g: (
        stats.bootstrap(
            (g.sample,), lambda x, axis: g.xp.mean(x, axis=axis), n_resamples=99, rng=0
        ).confidence_interval
    ),
    "permutation_test": lambda g: (
        stats.permutation_test(
            (g.sample[:6], g.other[:6]),
            lambda x, y, axis: g.xp.mean(x, axis=axis) - g.xp.mean(y, axis=axis),
            n_resamples=99,
            vectorized=True,
            rng=0,
        ).pvalue
    ),
    "power_divergence freeman-tukey": lambda g: stats.power_divergence(
        g.x, lambda_="freeman-tukey"
    ),
    "quantile": lambda g: stats.quantile(g.sample, g.array([0.2, 0.5])),
    "quantile of rows": lambda g: stats.quantile(g.x, g.array([[0.3]] * 4), axis=1, keepdims=True),
    "sigmaclip": lambda g: stats.sigmaclip(g.sample, 1.5, 1.5),
    "tmean within limits": lambda g: stats.tmean(g.sample, (-1, 1)),
    "tvar within limits": lambda g: stats.tvar(g.sample, (-1, 1)),
    "trim_mean": lambda g: stats.trim_mean(g.sample, 0.1),
    "ttest_1samp": lambda g: stats.ttest_1samp(g.sample, 0.5),
    "ttest_1samp interval": lambda g: stats.ttest_1samp(g.x, 0.5).confidence_interval(),
    "ttest_ind_from_stats": lambda g: stats.ttest_ind_from_stats(
        g.array(1.0), g.array(0.5), g.array(12.0), g.array(1.4), g.array(0.6), g.array(11.0)
    ),
    "ttest_ind welch": lambda g: stats.ttest_ind(g.sample, g.other, equal_var=False),
    "skew without bias": lambda g: stats.skew(g.x**2, bias=False),
    "variation ddof": lambda g: stats.variation(g.x, ddof=1),
    "sample with nan omitted": lambda g: stats.gmean(
        g.array([1.0, np.nan, 2.0]), nan_policy="omit"
    ),
}


LOOSE = {
    "brunnermunzel",
    "kstatvar of a sample",
    "mode of a sample",
    "mode of rows",
    "rankdata of a sample",
    "rankdata of rows",
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", STATS)
def test_as_with_arrays(name, dtype):
    compare(STATS[name], dtype, loose=name in LOOSE)
