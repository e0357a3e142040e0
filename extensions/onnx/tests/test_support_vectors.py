"""Support vector classifiers: against scikit-learn's, and votes that are counted one by one."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from tensorplug_onnx import NodeError, UnsupportedError

from .test_ml import KERNELS, load, run, same, sigmoid, softmax

F = np.float32
RNG = np.random.default_rng(11)
FEATURES = 3
SIZES = {2: (3, 2), 3: (2, 1, 3), 4: (1, 2, 2, 1)}  # vectors of each class
POINTS = RNG.normal(size=(9, FEATURES)).astype(F)


def machine(classes, kernel="RBF", *, probabilities=False):
    """Return attributes of a classifier that is drawn at random."""
    draw = np.random.default_rng(classes)
    pairs = classes * (classes - 1) // 2
    count = sum(SIZES[classes])
    made = {
        "coefficients": draw.normal(size=(classes - 1, count)),
        "rho": 0.2 * draw.normal(size=pairs),
        "support_vectors": draw.normal(size=(count, FEATURES)),
    }
    if probabilities:
        made |= {"prob_a": -1 - draw.uniform(size=pairs), "prob_b": draw.normal(size=pairs)}
    made = {name: array.astype(F) for name, array in made.items()}
    return made | {
        "vectors_per_class": np.array(SIZES[classes]),
        "kernel_type": kernel,
        "kernel_params": [0.5, 0.25, 3.0],
    }


def attributes(machine):
    return {
        name: value.ravel().tolist() if isinstance(value, np.ndarray) else value
        for name, value in machine.items()
    }


def decisions(machine, x):
    """Return the score of each pair of classes, from the vectors of these two alone."""
    ends = np.cumsum(machine["vectors_per_class"])
    of_class = [
        slice(end - n, end) for end, n in zip(ends, machine["vectors_per_class"], strict=True)
    ]
    kernel = KERNELS[machine["kernel_type"]](x, machine["support_vectors"])
    found = []
    for at, (i, j) in enumerate(itertools.combinations(range(len(ends)), 2)):
        a, b = of_class[i], of_class[j]
        score = kernel[:, a] @ machine["coefficients"][j - 1, a]
        score = score + kernel[:, b] @ machine["coefficients"][i, b]
        found.append(score + machine["rho"][at])
    return np.stack(found, axis=1)


def labels_of(scores, classes):
    found = []
    for row in scores:
        votes = [0] * classes
        for (i, j), score in zip(itertools.combinations(range(classes), 2), row, strict=True):
            votes[i if score > 0 else j] += 1
        found.append(votes.index(max(votes)))
    return found


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", SIZES)
def test_labels_have_most_votes(classes, kernel, compiled):
    drawn = machine(classes, kernel)
    expected = decisions(drawn, POINTS)
    label, scores = run(
        "SVMClassifier", POINTS, ("y", "z"), compiled=compiled,
        classlabels_ints=list(range(10, 10 + classes)), **attributes(drawn),
    )  # fmt: skip
    same(label, np.array(labels_of(expected, classes), np.int64) + 10)
    both = np.hstack([-expected, expected]) if classes == 2 else expected
    same(scores, both.astype(F), rtol=2e-5)


def test_labels_are_text_and_inputs_integers():
    drawn = machine(3)
    x = np.array([[1, 0, -1], [2, -1, 1], [0, 0, 0]])
    label, _ = run(
        "SVMClassifier", x, ("y", "z"), classlabels_strings=["a", "b", "c"], **attributes(drawn)
    )
    assert label.tolist() == ["abc"[at] for at in labels_of(decisions(drawn, x.astype(F)), 3)]


def coupled(r):
    """Return the p of sum 1 with the least sum of (r[j,i] p[i] - r[i,j] p[j])^2 over i != j.

    The method of Lagrange: a linear system, where the operator goes on step by step.
    """
    count = len(r)
    q = -r * r.T
    q[np.diag_indices(count)] = [
        sum(r[j, i] ** 2 for j in range(count) if j != i) for i in range(count)
    ]
    system = np.ones((count + 1, count + 1))
    system[:count, :count], system[count, count] = q, 0
    return np.linalg.solve(system, np.eye(count + 1)[count])[:count]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("classes", SIZES)
def test_probabilities_are_coupled(classes, compiled):
    drawn = machine(classes, probabilities=True)
    decided = decisions(drawn, POINTS)
    r = np.zeros((len(POINTS), classes, classes))
    for at, (i, j) in enumerate(itertools.combinations(range(classes), 2)):
        r[:, i, j] = sigmoid(-(drawn["prob_a"][at] * decided[:, at] + drawn["prob_b"][at]))
        r[:, j, i] = 1 - r[:, i, j]
    label, found = run(
        "SVMClassifier", POINTS, ("y", "z"), compiled=compiled,
        classlabels_ints=list(range(classes)), **attributes(drawn),
    )  # fmt: skip
    same(label, np.array(labels_of(decided, classes), np.int64))  # of the votes all the same
    expected = np.array([coupled(one) for one in r])
    assert found.dtype == F
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-6)
    # libsvm's iteration ends when no derivative differs by more than 0.005 / classes.
    np.testing.assert_allclose(found, expected, atol=0.005)


@pytest.mark.parametrize("transform", ["LOGISTIC", "SOFTMAX"])
def test_scores_are_transformed(transform):
    function = {"LOGISTIC": sigmoid, "SOFTMAX": softmax}[transform]
    for classes in (2, 3):
        drawn = machine(classes)
        expected = decisions(drawn, POINTS)
        both = np.hstack([-expected, expected]) if classes == 2 else expected
        _, found = run(
            "SVMClassifier", POINTS, ("y", "z"), classlabels_ints=list(range(classes)),
            post_transform=transform, **attributes(drawn),
        )  # fmt: skip
        same(found, function(both).astype(F), rtol=2e-5)


def test_without_vectors_the_coefficients_are_those_of_features():
    weights = RNG.normal(size=(3, FEATURES)).astype(F)
    label, found = run(
        "SVMClassifier", POINTS, ("y", "z"), classlabels_ints=[5, 6, 7],
        coefficients=weights.ravel().tolist(), rho=[0.5],
    )  # fmt: skip
    expected = POINTS @ weights.T + F(0.5)
    same(found, expected, rtol=1e-5)
    same(label, expected.argmax(1) + 5)


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"rho": [0.5]}, NodeError, "3 classes are 3 pairs, got 1 in 'rho'"),
        ({"classlabels_ints": [1, 2]}, NodeError, "2 labels, 3 in 'vectors_per_class'"),
        ({"prob_a": [1.0] * 3, "prob_b": [1.0]}, NodeError, "3 in 'prob_a' and 1 in 'prob_b'"),
        ({"kernel_type": "COSINE"}, NodeError, "kernel_type 'COSINE' is unknown"),
        ({"vectors_per_class": [], "classlabels_ints": [1]}, UnsupportedError, "one class"),
    ],
)
def test_attributes_that_do_not_fit_are_told(change, error, told):
    given = {"classlabels_ints": [1, 2, 3], **attributes(machine(3)), **change}
    given = {name: value for name, value in given.items() if value != []}
    with pytest.raises(error, match=told):
        load("SVMClassifier", POINTS, ("y", "z"), **given)(POINTS)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_a_classifier_of_scikit_learn(classes, kernel):
    svm = pytest.importorskip("sklearn.svm")
    draw = np.random.default_rng(classes)
    centers = 1.2 * draw.normal(size=(classes, FEATURES))
    x = draw.normal(size=(25 * classes, FEATURES)) + np.repeat(centers, 25, axis=0)
    y = np.repeat(np.arange(classes), 25)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # probabilities will go from SVC
        trained = svm.SVC(
            kernel=kernel, gamma=0.5, coef0=0.25, degree=3, probability=True, random_state=0,
            decision_function_shape="ovo",
        ).fit(x, y)  # fmt: skip
        points = draw.normal(size=(40, FEATURES)).astype(F)
        decided, probable = trained.decision_function(points), trained.predict_proba(points)
        platt = {"prob_a": trained.probA_, "prob_b": trained.probB_}
    sign = -1 if classes == 2 else 1  # scikit-learn turns the score of two classes around
    given = {
        "classlabels_ints": list(range(classes)), "kernel_type": kernel.upper(),
        "kernel_params": [0.5, 0.25, 3.0], "vectors_per_class": trained.n_support_.tolist(),
        **{
            name: np.ravel(array).tolist()
            for name, array in {
                "coefficients": sign * trained.dual_coef_, "rho": sign * trained.intercept_,
                "support_vectors": trained.support_vectors_,
            }.items()
        },
    }  # fmt: skip
    label, scores = run("SVMClassifier", points, ("y", "z"), **given)
    same(label, trained.predict(points))
    expected = np.stack([decided, -decided], axis=1) if classes == 2 else decided
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)
    given |= {name: array.tolist() for name, array in platt.items()}
    label, scores = run("SVMClassifier", points, ("y", "z"), **given)
    same(label, trained.predict(points))
    np.testing.assert_allclose(scores, probable, atol=1e-5)
