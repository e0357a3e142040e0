"""Which checkpoints are kept, and what is refused."""

from __future__ import annotations

import math

import pytest

import tensorplug as tp


def names(checkpoints):
    return [int(path.name.removeprefix("step-")) for path in checkpoints.all()]


# Options, values by step 1, 2, ..., the steps that are left, and the best.
KEPT = [
    ({}, [3, 1, 2, 4], [2, 3, 4], 2),
    ({"keep_last": 1}, [3, 1, 2, 4], [2, 4], 2),
    ({"keep_last": 1, "keep_best": 2}, [3, 1, 2, 4], [2, 3, 4], 2),
    ({"keep_last": 1, "mode": "max"}, [3, 5, 5, 4], [2, 4], 2),
    ({"keep_last": 1, "keep_best": 0}, [3, 1, 2, 4], [4], 4),
    ({"keep_last": 1}, [math.nan, 2, math.nan], [2, 3], 2),
    ({"keep_last": 2}, [math.nan, math.nan, math.nan], [2, 3], None),
]


@pytest.mark.parametrize(("options", "values", "left", "best"), KEPT)
def test_the_latest_and_the_best_are_kept(tmp_path, options, values, left, best):
    checkpoints = tp.train.Checkpoints(tmp_path / "new", monitor="score", **options)
    assert (checkpoints.all(), checkpoints.latest(), checkpoints.best()) == ([], None, None)
    for step, value in enumerate(values, 1):
        checkpoints.save(step, {"model": tp.asarray(float(step))}, {"score": value})
    assert names(checkpoints) == left
    assert checkpoints.latest() == checkpoints.all()[-1]
    found = checkpoints.best()
    assert (found and int(found.name[-3:])) == best
    if best:
        assert checkpoints.load({"model": tp.asarray(0.0)}, found)["model"].item() == best


def test_a_failed_save_leaves_what_was_there(tmp_path, monkeypatch):
    checkpoints = tp.train.Checkpoints(tmp_path)
    checkpoints.save(1, {"model": tp.ones(2)})
    with pytest.raises(tp.errors.DTypeError):
        checkpoints.save(1, {"model": tp.ones(2), "notes": "text"})
    with pytest.raises(TypeError):
        checkpoints.save(2, {"model": tp.ones(2)}, notes={"no": object()})
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]
    assert checkpoints.load({"model": tp.zeros(2)})["model"].tolist() == [1.0, 1.0]
    checkpoints.save(1, {"model": tp.ones(2) * 3})  # the same step again
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]
    assert checkpoints.load({"model": tp.zeros(2)})["model"].tolist() == [3.0, 3.0]


def test_parts_may_be_left_out_and_structures_are_kept(tmp_path):
    linear = tp.train.layers.Linear(tp.ones((2, 3)), None)
    tree = {"layers": [linear, None, {"a.b": (tp.zeros(1), 2.5)}]}
    checkpoints = tp.train.Checkpoints(tmp_path)
    checkpoints.save(7, {"model": tree, "optimizer_state": {"step": tp.asarray(3)}})
    found = checkpoints.load({"model": tp.tree_map(lambda leaf: leaf * 0, tree)})
    assert list(found) == ["model"]
    first, second, third = found["model"]["layers"]
    assert type(first) is type(linear)
    assert first.weight.tolist() == [[1.0] * 3] * 2
    assert (first.bias, second) == (None, None)
    assert (third["a.b"][0].tolist(), third["a.b"][1]) == ([0.0], 2.5)


def test_another_model_is_refused_with_all_differences(tmp_path):
    checkpoints = tp.train.Checkpoints(tmp_path)
    saved = {"a": tp.ones(2), "b": [tp.ones((2, 3)), tp.ones(1)]}
    checkpoints.save(1, {"model": saved, "state": None})
    other = {"a": tp.ones(2, dtype="float16"), "b": [tp.ones((3, 2))], "c": tp.ones(4)}
    with pytest.raises(tp.errors.ArgumentError) as caught:
        checkpoints.load({"model": other})
    assert str(caught.value).splitlines()[1:] == [
        "  missing: model.c float32[4]",
        "  additional: model.b.1 float32[1]",
        "  another type: model.a is float32[2], not float16[2]",
        "  another type: model.b.0 is float32[2,3], not float32[3,2]",
    ]
    with pytest.raises(tp.errors.ArgumentError, match="has no checkpoint"):
        tp.train.Checkpoints(tmp_path / "empty").load({"model": other})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "least"}, "mode must be 'min' or 'max'"),
        ({"keep_last": 0}, "keep_last must be at least 1"),
        ({"keep_best": -1}, "keep_best must be an integer from 0"),
        ({"monitor": 3}, "monitor must be text"),
    ],
)
def test_options(tmp_path, options, words):
    with pytest.raises(tp.errors.ArgumentError, match=words):
        tp.train.Checkpoints(tmp_path, **options)


def test_a_row_without_the_name(tmp_path):
    checkpoints = tp.train.Checkpoints(tmp_path, monitor="validation_acuracy")
    with pytest.raises(tp.errors.ArgumentError, match="Did you mean 'validation_accuracy'"):
        checkpoints.save(1, {}, {"validation_loss": 1.0, "validation_accuracy": 1.0})
    assert checkpoints.all() == []
