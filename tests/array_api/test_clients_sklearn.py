"""scikit-learn on tensors, with array_api_dispatch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tensorplug.errors import DTypeError

from .clients import DTYPES, by_views, compare, names, refused, require_scipy_switch

if TYPE_CHECKING:
    from .clients import Call

pytest.importorskip("sklearn")
require_scipy_switch()

import sklearn  # noqa: E402  # it wants the switch too
from sklearn import (  # noqa: E402
    decomposition,
    discriminant_analysis,
    kernel_approximation,
    linear_model,
    metrics,
    mixture,
    model_selection,
    naive_bayes,
    preprocessing,
)
from sklearn.metrics import pairwise  # noqa: E402

KINDS = np.repeat([0, 1, 2], 15)
BINARY = np.arange(45) % 2
GUESS = (np.arange(45) * 7 % 5 < 2).astype("int32")
SCORES = np.random.default_rng(3).uniform(0.05, 0.95, 45)


def _fitted(estimator, x, y=None):
    """Return what the estimator learned and what it makes of its input."""
    estimator.fit(x, y) if y is not None else estimator.fit(x)
    learned = {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and name != "n_iter_" and hasattr(value, "ndim")
    }
    made = {
        name: getattr(estimator, name)(x)
        for name in ("transform", "predict", "predict_proba", "decision_function")
        if hasattr(estimator, name)
    }
    return {**learned, **made}


ESTIMATORS = {
    "Binarizer": lambda: preprocessing.Binarizer(threshold=0.5),
    "KernelCenterer": preprocessing.KernelCenterer,
    "MaxAbsScaler": preprocessing.MaxAbsScaler,
    "MinMaxScaler": preprocessing.MinMaxScaler,
    "MinMaxScaler clip": lambda: preprocessing.MinMaxScaler((-1, 1), clip=True),
    "Normalizer l1": lambda: preprocessing.Normalizer("l1"),
    "Normalizer l2": preprocessing.Normalizer,
    "Normalizer max": lambda: preprocessing.Normalizer("max"),
    "PolynomialFeatures": lambda: preprocessing.PolynomialFeatures(3),
    "StandardScaler": preprocessing.StandardScaler,
    "StandardScaler without mean": lambda: preprocessing.StandardScaler(with_mean=False),
    "PCA full": lambda: decomposition.PCA(2, svd_solver="full"),
    "PCA by eigenvalues": lambda: decomposition.PCA(2, svd_solver="covariance_eigh"),
    "PCA full whitened": lambda: decomposition.PCA(2, svd_solver="full", whiten=True),
    "PCA a share of the variance": lambda: decomposition.PCA(0.9, svd_solver="full"),
    "PCA randomized": lambda: decomposition.PCA(
        2, svd_solver="randomized", power_iteration_normalizer="QR", random_state=0
    ),
    **{
        f"GaussianMixture {kind}": lambda kind=kind: mixture.GaussianMixture(
            2, covariance_type=kind, init_params="random", random_state=0, max_iter=300
        )
        for kind in ("tied", "diag", "spherical")
    },
    "Nystroem": lambda: kernel_approximation.Nystroem(
        kernel="rbf", n_components=10, random_state=0
    ),
}
SUPERVISED = {
    "GaussianNB": naive_bayes.GaussianNB,
    "LinearDiscriminantAnalysis": discriminant_analysis.LinearDiscriminantAnalysis,
    "LogisticRegression": lambda: linear_model.LogisticRegression(C=0.01, tol=1e-8),
    "RidgeClassifierCV": linear_model.RidgeClassifierCV,
    "RidgeClassifier": lambda: linear_model.RidgeClassifier(solver="svd"),
}
REGRESSORS = {
    "PoissonRegressor": lambda: linear_model.PoissonRegressor(solver="lbfgs", tol=1e-8),
    "Ridge": lambda: linear_model.Ridge(solver="svd"),
    "RidgeCV": linear_model.RidgeCV,
}


def _square(name, x):
    return x @ x.T if name == "KernelCenterer" else x


FITS: dict[str, Call] = {
    **{
        name: lambda g, name=name, make=make: _fitted(make(), _square(name, g.points))
        for name, make in ESTIMATORS.items()
    },
    **{
        name: lambda g, make=make: _fitted(make(), g.points, g.ints(KINDS))
        for name, make in SUPERVISED.items()
    },
    **{
        name: lambda g, make=make: _fitted(make(), g.points, g.xp.abs(g.points[:, 0]))
        for name, make in REGRESSORS.items()
    },
    "LabelEncoder": lambda g: _fitted(preprocessing.LabelEncoder(), g.ints(KINDS * 5)),
    "StandardScaler and back": lambda g: (
        preprocessing.StandardScaler().fit(g.points).inverse_transform(g.points)
    ),
    "MinMaxScaler in parts": lambda g: _fitted(
        preprocessing.MinMaxScaler().partial_fit(g.points[:20, :]), g.points
    ),
    "PCA and back": lambda g: (
        decomposition.PCA(2, svd_solver="full").fit(g.points).inverse_transform(g.points[:, :2])
    ),
    "PCA score": lambda g: decomposition.PCA(2, svd_solver="full").fit(g.points).score(g.points),
    "PCA covariance": lambda g: (
        decomposition.PCA(2, svd_solver="full").fit(g.points).get_covariance()
    ),
    "Ridge score": lambda g: (
        linear_model.Ridge(solver="svd").fit(g.points, g.v[:45]).score(g.points, g.v[5:])
    ),
    "train_test_split": lambda g: model_selection.train_test_split(
        g.points, g.ints(KINDS), random_state=0
    ),
    "cross_val_predict": lambda g: model_selection.cross_val_predict(
        linear_model.Ridge(solver="svd"), g.points, g.points[:, 0], cv=3
    ),
    "cross_val_score": lambda g: model_selection.cross_val_score(
        discriminant_analysis.LinearDiscriminantAnalysis(), g.points, g.ints(KINDS), cv=3
    ).tolist(),
}
CLASSES = names(
    "accuracy_score balanced_accuracy_score cohen_kappa_score confusion_matrix f1_score "
    "hamming_loss jaccard_score multilabel_confusion_matrix precision_score recall_score "
    "zero_one_loss"
)
SCORED = names("average_precision_score brier_score_loss d2_brier_score precision_recall_curve")
NUMBERS = names(
    "d2_absolute_error_score d2_pinball_score d2_tweedie_score explained_variance_score max_error "
    "mean_absolute_error mean_absolute_percentage_error mean_gamma_deviance mean_pinball_loss "
    "mean_poisson_deviance mean_squared_error mean_squared_log_error mean_tweedie_deviance "
    "median_absolute_error r2_score root_mean_squared_error root_mean_squared_log_error"
)
PAIRS = names(
    "cosine_distances cosine_similarity euclidean_distances laplacian_kernel linear_kernel "
    "manhattan_distances paired_cosine_distances paired_euclidean_distances "
    "paired_manhattan_distances polynomial_kernel rbf_kernel sigmoid_kernel"
)
METRICS: dict[str, Call] = {
    **{
        name: lambda g, name=name: getattr(metrics, name)(g.ints(BINARY), g.ints(GUESS))
        for name in CLASSES
    },
    **{
        name: lambda g, name=name: getattr(metrics, name)(g.ints(BINARY), g.array(SCORES))
        for name in SCORED
    },
    **{
        name: lambda g, name=name: getattr(metrics, name)(
            g.xp.abs(g.sample) + 0.1, g.xp.abs(g.other) + 0.2
        )
        for name in NUMBERS
    },
    **{
        name: lambda g, name=name: getattr(pairwise, name)(g.points, g.points[::-1, :] + 0.5)
        for name in PAIRS
    },
    "additive_chi2_kernel": lambda g: pairwise.additive_chi2_kernel(g.x, g.x[::-1, :]),
    "chi2_kernel": lambda g: pairwise.chi2_kernel(g.x, g.x[::-1, :]),
    "fbeta_score": lambda g: metrics.fbeta_score(g.ints(BINARY), g.ints(GUESS), beta=0.5),
    "f1_score of classes": lambda g: metrics.f1_score(
        g.ints(KINDS), g.ints(KINDS[::-1].copy()), average=None
    ),
    "log_loss": lambda g: metrics.log_loss(
        g.ints(BINARY), g.xp.stack([1 - g.array(SCORES), g.array(SCORES)], axis=1)
    ),
    "d2_log_loss_score": lambda g: metrics.d2_log_loss_score(
        g.ints(BINARY), g.xp.stack([1 - g.array(SCORES), g.array(SCORES)], axis=1)
    ),
    "roc_curve": lambda g: metrics.roc_curve(
        g.ints(BINARY), g.array(SCORES), drop_intermediate=False
    ),
    "det_curve": lambda g: metrics.det_curve(g.ints(BINARY), g.array(SCORES)),
    "mean_squared_error of columns": lambda g: metrics.mean_squared_error(
        g.x, g.x + 1, multioutput="raw_values"
    ),
    "pairwise_distances": lambda g: metrics.pairwise_distances(g.points),
    "pairwise_distances_argmin": lambda g: metrics.pairwise_distances_argmin(
        g.points, g.points[::15, :]
    ),
    "pairwise_kernels": lambda g: pairwise.pairwise_kernels(g.points, metric="rbf"),
    "calinski_harabasz_score": lambda g: metrics.calinski_harabasz_score(g.points, g.ints(KINDS)),
}
TABLE = {**FITS, **METRICS}
LOOSE = {
    "PCA a share of the variance",
    "GaussianMixture tied",
    "GaussianMixture diag",
    "GaussianMixture spherical",
    "LabelEncoder",
    "laplacian_kernel",
    "manhattan_distances",
    "pairwise_distances_argmin",
    *CLASSES,
    *SCORED,
    "d2_log_loss_score",
}
# docs/array_api.md, "Clients", says why.
REFUSED: dict[str, tuple[Call, type[Exception], str]] = {
    "roc_curve without intermediate points": (
        lambda g: metrics.roc_curve(g.ints(BINARY), g.array(SCORES)),
        DTypeError,
        "LogicalOr.* its dtype must be one of bool",
    ),
}


@pytest.fixture(autouse=True)
def dispatch():
    with sklearn.config_context(array_api_dispatch=True):
        yield


# In float32 the last digits decide where the iteration stops.
RUNS = [(name, dtype) for name in TABLE for dtype in DTYPES]
RUNS.remove(("LogisticRegression", "float32"))


@pytest.mark.parametrize(("name", "dtype"), RUNS)
def test_as_with_arrays(name, dtype):
    compare(TABLE[name], dtype, loose=name in LOOSE)


def test_functions_that_write_through_views():
    """``reg_covar`` is added to the diagonal of a view; so here it is lost."""
    by_views(
        lambda g: (
            mixture.GaussianMixture(3, init_params="random", random_state=0, reg_covar=0.5)
            .fit(g.points)
            .covariances_
        )
    )


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_functions_that_cannot_work(call, error, message):
    refused(call, error, message)
