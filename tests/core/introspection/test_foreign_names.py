"""Names that other libraries have lead to ours, and no name leads to something else."""

from __future__ import annotations

import re
from functools import reduce

import pytest
from tests.core.support import sharing

import tensorplug as tp
from tensorplug.contract import misspellings
from tensorplug.dispatch.calls import chained
from tensorplug.introspection import foreign_advice, foreign_names
from tensorplug.tensors import foreign_members, methods


def sought(key):
    """Return the public module in which a key of the tables is sought, and the name."""
    part, _, name = key.rpartition(".")
    return (getattr(tp, part) if part else tp), name


def name_of(module):
    """Return a public module's name, also if an extension brings it."""
    return module.__name__.replace("tensorplug_", "tensorplug.")


def is_there(path):
    return reduce(getattr, path.split("."), tp) is not None


def message(module, name):
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert caught.value.name == name
    return str(caught.value)


@pytest.mark.parametrize("key", foreign_names.FOREIGN)
def test_names_of_other_libraries(key):
    target = foreign_names.FOREIGN[key]
    assert is_there(target)
    module, name = sought(key)
    assert message(module, name) == (
        f"module {name_of(module)!r} has no attribute {name!r}; here it is tensorplug.{target}"
    )


@pytest.mark.parametrize("key", foreign_advice.ADVICE)
def test_what_is_done_in_another_way(key):
    advice = foreign_advice.ADVICE[key]
    for path in re.findall(r"tensorplug\.([\w.]*\w)", advice):
        assert is_there(path)
    for attribute in re.findall(r"\bx\.(\w+)", advice):
        assert hasattr(tp.Tensor, attribute)
    module, name = sought(key)
    assert message(module, name).endswith(f"{name!r}; {advice}")


def test_each_name_is_in_one_table_once():
    keys = [*foreign_names.FOREIGN, *foreign_advice.ADVICE]
    plain = [key.replace("_", "").lower() for key in keys]
    assert sorted(key for key in plain if plain.count(key) > 1) == []


@pytest.mark.parametrize(
    ("part", "name", "hint"),
    [
        ("", "argMax", "here it is tensorplug.argmax"),
        ("", "squaredDifference", "here it is tensorplug.squared_difference"),
        ("", "relu", "here it is tensorplug.nn.relu"),
        ("", "Conv2D", "here it is tensorplug.nn.conv2d"),
        ("", "adam", "here it is tensorplug.train.adam"),
        ("", "Adam", "here it is tensorplug.train.adam"),
        ("", "reshap", "did you mean tensorplug.reshape?"),
        ("", "rehsape", "did you mean tensorplug.reshape?"),
        ("", "softmx", "did you mean tensorplug.nn.softmax?"),
        ("", "bradcast_too", "did you mean tensorplug.broadcast_to?"),
        ("", "solve_triangluar", "did you mean tensorplug.linalg.solve_triangular?"),
        ("", "epx", "did you mean tensorplug.exp?"),
        ("nn", "rleu", "did you mean tensorplug.nn.relu?"),
        ("linalg", "slove", "did you mean tensorplug.linalg.solve?"),
        ("nn", "Linear", "write x @ w + b"),
        ("nn", "ReLU", "here it is tensorplug.nn.relu"),
        ("nn", "matmul", "here it is tensorplug.matmul"),
        ("nn", "CrossEntropyLoss", "here it is tensorplug.losses.sparse_softmax_cross_entropy"),
        ("nn", "max_pooll", "did you mean tensorplug.nn.max_pool?"),
        ("random", "randn", "here it is tensorplug.random.normal"),
        ("random", "rand", "here it is tensorplug.random.uniform"),
        ("random", "unifrom", "did you mean tensorplug.random.uniform?"),
        ("linalg", "eigvalssh", "did you mean tensorplug.linalg.eigvalsh?"),
        ("linalg", "einsum", "here it is tensorplug.einsum"),
        ("fft", "stft", "here it is tensorplug.signal.stft"),
        ("losses", "MSELoss", "here it is tensorplug.losses.mean_squared_error"),
        ("special", "lgamma", "here it is tensorplug.special.gammaln"),
        ("train", "StepLR", "here it is tensorplug.train.piecewise_constant"),
        ("image", "upsample", "here it is tensorplug.image.resize"),
    ],
)
def test_other_spellings(part, name, hint):
    module = getattr(tp, part) if part else tp
    assert message(module, name) == f"module {name_of(module)!r} has no attribute {name!r}; {hint}"


# Of other libraries, without a counterpart here: no name of ours is near enough to be meant.
NOTHING = """
frexp ldexp nancumprod gcd lcm unwrap real_if_close isreal isrealobj diag_indices diagflat
fill_diagonal ix_ ogrid mask_indices polyadd roots poly bmat trim_zeros unpackbits packbits
choose lexsort sort_complex cumulative_trapezoid correlate blackman bartlett kaiser fromfunction
fromiter fromstring load_npz memmap setxor1d ndenumerate ndindex nditer apply_over_axes frompyfunc
common_type min_scalar_type isscalar base_repr binary_repr busday_count datetime64 array_str
array_repr get_printoptions show_config addbmm addcdiv addcmul addmv addr block_diag cartesian_prod
celu chain_matmul channel_shuffle cholesky_inverse cholesky_solve clamp_min clamp_max combinations
compiled_with_cxx11_abi conj_physical constant_pad_nd conv_tbc cosine_embedding_loss ctc_loss
detach dist dsplit embedding_bag feature_dropout fbgemm fused_dropout geqrf gru_cell hardshrink
hinge_embedding_loss hspmm igamma igammac index_add index_copy index_fill index_put kthvalue
layout lobpcg lu_solve margin_ranking_loss max_pool2d_with_indices mode mvlgamma
nonzero_static nuclear_norm orgqr ormqr pairwise_distance pdist poisson_nll_loss polar renorm
rnn_tanh rrelu saddmm segment_reduce select_scatter smm softshrink sparse_coo_tensor sspmm
sym_float symeig triangular_solve triplet_margin_loss unflatten unfold unique_consecutive
unsafe_chunk view_as_complex view_as_real zero_ device_put_sharded eval_shape named_call
xla_computation custom_jvp closure_convert ensure_compile_time_eval linear_transpose live_arrays
make_array_from_callback named_scope debug_nans process_index pure_callback clz collapse
conv_dimension_numbers reduce_window rng_bit_generator select_and_scatter population_count
enableProdMode backend_util fused moving oneHotAsync print loadLayersModel loadGraphModel model
input callbacks constraints regularizers data browser RaggedTensor
SparseTensor TensorArray group Assert name_scope control_dependencies 316
"""


@pytest.mark.parametrize("name", [*NOTHING.split(), "quux", "__wrapped__"])
def test_unknown_names(name):
    assert message(tp, name) == f"module 'tensorplug' has no attribute {name!r}"
    assert not hasattr(tp, name)


@pytest.mark.parametrize("name", ["__wrapped__", "__path__", "quux"])
def test_unknown_names_of_submodules(name):
    assert message(tp.nn, name) == f"module 'tensorplug.nn' has no attribute {name!r}"


@pytest.mark.parametrize(
    ("a", "b", "slips"),
    [
        ("", "", 0),
        ("abc", "abc", 0),
        ("abc", "acb", 1),
        ("abc", "abcd", 1),
        ("abc", "bc", 1),
        ("abc", "axc", 1),
        ("ca", "abc", 3),  # no character moves twice
        ("kitten", "sitting", 3),
    ],
)
def test_slips_of_the_keyboard_are_counted(a, b, slips):
    assert misspellings.slips(a, b) == misspellings.slips(b, a) == slips


@pytest.mark.parametrize("name", foreign_members.MEMBERS)
def test_members_of_other_arrays(name):
    advice = foreign_members.MEMBERS[name]
    for path in re.findall(r"tensorplug\.([\w.]*\w)", advice):
        assert is_there(path)
    for attribute in re.findall(r"\b[xy]\.(\w+)", advice):
        assert hasattr(tp.Tensor, attribute)
    with sharing.engines.using(sharing.make()):
        x = tp.asarray([1.0])
        assert message(x, name) == f"'Tensor' object has no attribute {name!r}; {advice}"
        assert not hasattr(x, name)
        assert name not in dir(x)
    assert not hasattr(tp.Tensor, name)


def test_dir_of_a_tensor():
    with sharing.engines.using(sharing.make()):
        listed = dir(tp.asarray([1.0]))
    assert {"shape", "sum", "__add__", "_buffer"} <= set(listed)
    hidden, hints = set(dir(tp.Tensor)) - set(listed), set(foreign_members.MEMBERS)
    assert hints <= hidden <= hints | set(foreign_members.FUNCTIONS)


def test_an_op_may_take_the_place_of_a_hint():
    def view(x):
        return x

    old = vars(tp.Tensor)["view"]
    try:
        methods.attach([chained(view)])
        assert tp.Tensor.view.__wrapped__ is view
    finally:
        tp.Tensor.view = old


def test_modules_are_found_all_the_same():
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.tensors.variable import Variable

    assert (Tensor, Variable) == (tp.Tensor, tp.Variable)
