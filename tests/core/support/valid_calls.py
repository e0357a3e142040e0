"""A call that works of every public function, and the functions that other tests call."""

from __future__ import annotations

import inspect

import numpy as np
from tests.core.support import bad_calls_images

import tensorplug as tp

X = np.ones((3, 4), np.float32)
IMAGE = np.ones((1, 5, 5, 2), np.float32)
VOLUME = np.ones((1, 3, 3, 3, 2), np.float32)
FILTER = np.ones((3, 3, 2, 1), np.float32)
B = np.ones((3, 4), bool)
I = np.zeros((3,), np.int32)  # noqa: E741  # indices, beside X
T = object()  # where a tensor goes

# Each public function that takes tensors: what messages call it, a good value for each tensor
# (T marks where bad ones are tried), and its other arguments.
UNARY = {
    **dict.fromkeys(("abs", "floor", "exp", "log", "sqrt", "sin", "cos", "atan", "erf"), X),
    **dict.fromkeys(("tanh", "square", "negative", "zeros_like", "ones_like", "identity"), X),
    **dict.fromkeys(("relu", "sigmoid", "softmax", "log_softmax", "sum", "prod", "mean"), X),
    **dict.fromkeys(("max", "min", "argmax", "topk", "matrix_transpose", "permute_dims"), X),
    **dict.fromkeys(("any", "all", "logical_not"), B),
    "expand_dims": X,
    **dict.fromkeys(("argmin", "argsort", "sort", "cumsum", "cumprod", "diff", "std", "var"), X),
    **dict.fromkeys(("count_nonzero", "log_sum_exp", "unique", "unique_all"), X),
    **dict.fromkeys(("unique_counts", "unique_inverse", "unique_values"), X),
    **dict.fromkeys(("cumulative_prod", "cumulative_sum"), X[0]),
    **dict.fromkeys(("acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh", "tan"), X),
    **dict.fromkeys(("expm1", "log1p", "log2", "log10", "reciprocal", "rsqrt", "ceil"), X),
    **dict.fromkeys(("round", "trunc", "sign", "signbit", "isfinite", "isinf", "isnan"), X),
    **dict.fromkeys(("conj", "real", "imag", "positive"), X),
    **dict.fromkeys(("median", "nansum", "nanmean", "nanmax", "nanmin", "nan_to_num"), X),
    **dict.fromkeys(("cov", "corrcoef"), X),
    "cumulative_log_sum_exp": X[0],
    "bitwise_invert": B,
    **dict.fromkeys(("empty_like", "flip", "diag", "tril", "triu", "unstack"), X),
    **dict.fromkeys(("elu", "gelu", "leaky_relu", "log_sigmoid", "relu6", "selu", "silu"), X),
    **dict.fromkeys(("softplus", "step", "local_response_normalization", "moments"), X),
}
BINARY = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "floor_divide", "remainder"), X),
    **dict.fromkeys(("pow", "maximum", "minimum", "squared_difference", "equal", "less"), X),
    **dict.fromkeys(("not_equal", "less_equal", "greater", "greater_equal"), X),
    **dict.fromkeys(("logical_and", "logical_or"), B),
    **dict.fromkeys(("atan2", "hypot", "logaddexp", "copysign", "nextafter", "div_no_nan"), X),
    **dict.fromkeys(("logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"), B),
}
OTHERS = {
    "asarray": [[X], ()],
    "avg_pool": [[IMAGE], (2, 2)],
    "avg_pool3d": [[VOLUME], (2, 2)],
    "batch_norm": [[X, X, X], ()],
    "layer_norm": [[X], ()],
    "multiply_add": [[X, X, X], ()],
    "batch_to_space_nd": [[X], ([1], [(0, 0)])],
    "astype": [[X], ("float64",)],
    "bitwise_left_shift": [[I, I], ()],
    "bitwise_right_shift": [[I, I], ()],
    "broadcast_args": [[I, I], ()],
    "broadcast_arrays": [[X, X], ()],
    "broadcast_to": [[X], ((2, 3, 4),)],
    "clip": [[X], (0, 1)],
    "clip_by_value": [[X], (0, 1)],
    "complex": [[X, X], ()],
    "confusion_matrix": [[I, I], (3,)],
    "conv1d": [[IMAGE[0], FILTER[0]], ()],
    "conv2d": [[IMAGE, FILTER], ()],
    "conv2d_transpose": [[IMAGE[..., :1], FILTER], ((1, 7, 7, 2),)],
    "conv3d": [[IMAGE[None], FILTER[None]], ()],
    "conv3d_transpose": [[IMAGE[None, ..., :1], FILTER[None]], ((1, 1, 7, 7, 2),)],
    "depthwise_conv2d": [[IMAGE, FILTER], ()],
    "dilation2d": [[IMAGE, FILTER[..., 0]], ()],
    "fused_conv2d": [[IMAGE, FILTER], ()],
    "fused_depthwise_conv2d": [[IMAGE, FILTER], ()],
    "fused_matmul": [[X, X.T], ()],
    "separable_conv2d": [[IMAGE, FILTER, FILTER[:1, :1]], ()],
    "depth_to_space": [[IMAGE], (1,)],
    "dot": [[X, X.T], ()],
    "embedding": [[X, I], ()],
    "ensure_shape": [[X], ((3, 4),)],
    "full_like": [[X], (1,)],
    "argpartition": [[X], (0,)],
    "argwhere": [[X], ()],
    "bincount": [[I], (None, 3)],
    "bitcast": [[X], ("int32",)],
    "boolean_mask": [[X, B], ()],
    "convolve": [[X[0], X[0]], ()],
    "dense_bincount": [[I], (None, 3)],
    "dynamic_slice": [[X, I[:2]], ((1, 1),)],
    "dynamic_update_slice": [[X, X, I[:2]], ()],
    "gather": [[X, I], ()],
    "gather_nd": [[X, I[:, None]], ()],
    "nonzero": [[X], ()],
    "sparse_to_dense": [[I, I], ((3,),)],
    "take": [[X[0], I], ()],
    "take_along_axis": [[X[:, 0], I], ()],
    "tensor_scatter_reduce": [[X, I[:, None], X], ("add",)],
    "tensor_scatter_update": [[X, I[:, None], X], ()],
    "unsorted_segment_sum": [[X, I], (3,)],
    "group_norm": [[X], (1,)],
    "instance_norm": [[X[None]], ()],
    "rms_norm": [[X], ()],
    "in_top_k": [[X, I], ()],
    "interp": [[X, X[0], X[0]], ()],
    "isin": [[X, X], ()],
    "lower_bound": [[X, X], ()],
    "matmul": [[X, X.T], ()],
    "max_pool": [[IMAGE], (2, 2)],
    "max_pool3d": [[VOLUME], (2, 2)],
    "max_pool_with_argmax": [[IMAGE], (2, 2)],
    "max_unpool": [[IMAGE, IMAGE.astype(int)], ((1, 5, 5, 2),)],
    "meshgrid": [[I, I], ()],
    "mirror_pad": [[X], ([(0, 0), (0, 0)], "reflect")],
    "moveaxis": [[X], (0, 1)],
    "one_hot": [[I], (3,)],
    "moving_average": [[X, X], (0.5, 1)],
    "outer_product": [[X[0], X[0]], ()],
    "scatter_along_axis": [[X, I[:, None], X[:, :1]], ()],
    "nanpercentile": [[X], (50,)],
    "nanquantile": [[X], (0.5,)],
    "pad": [[X], ([(0, 0), (0, 0)],)],
    "partition": [[X], (0,)],
    "percentile": [[X], (50,)],
    "polyfit": [[X[0], X[0]], (1,)],
    "polyval": [[X, X], ()],
    "pool": [[IMAGE], (2, "max")],
    "prelu": [[X, X], ()],
    "quantile": [[X], (0.5,)],
    "dequantize": [[I], (0.5,)],
    "quantized_matmul": [[X, X.T], (0.5, 0.5)],
    "repeat": [[X], (2,)],
    "reshape": [[X], ((12,),)],
    "roll": [[X], (1,)],
    "scatter_nd": [[I[:, None], I], ((3,),)],
    "scaled_dot_product_attention": [[X, X, X], ()],
    "rotary": [[X], ()],
    "searchsorted": [[X, X], ()],
    **{f"segment_{name}": [[X, I], ()] for name in ("max", "mean", "min", "prod", "sum")},
    "setdiff1d": [[X[0], X[0]], ()],
    "slice": [[X], ((0, 0),)],
    "softmax_cross_entropy": [[X, X], ()],
    **{name: [[X, X], ()] for name in ("absolute_difference", "hinge_loss", "huber_loss")},
    **{name: [[X, X], ()] for name in ("log_loss", "mean_squared_error")},
    **{name: [[X, X], ()] for name in ("binary_cross_entropy", "kl_divergence")},
    "compute_weighted_loss": [[X], ()],
    "cosine_distance": [[X, X], (0,)],
    "sigmoid_cross_entropy": [[X, X], ()],
    "space_to_batch_nd": [[X], ([1], [(0, 0)])],
    "space_to_depth": [[IMAGE], (1,)],
    "sparse_softmax_cross_entropy": [[I, X], ()],
    "split": [[X], (1,)],
    "squeeze": [[X[None]], (0,)],
    "strided_slice": [[X], ([0], [1])],
    "swapaxes": [[X], (0, 1)],
    "tensordot": [[X, X], ()],
    "tile": [[X], (2,)],
    "upper_bound": [[X, X], ()],
    "vecdot": [[X, X], ()],
    "where": [[B, X, X], ()],
}
CALLS = {
    **{name: [[value], ()] for name, value in UNARY.items()},
    **{name: [[value, value], ()] for name, value in BINARY.items()},
    **OTHERS,
    **bad_calls_images.CALLS,
}
# Functions that take no tensor, or have other tests (control, memory, tree, autodiff).
OTHER_TESTS = {
    *("arange", "full", "ones", "zeros", "concat", "stack", "add_n"),  # below
    *("broadcast_shapes", "empty", "eye", "linspace"),  # test_broadcasting
    *("vstack", "hstack", "dstack", "column_stack", "logspace"),  # test_shaping, test_sampled
    *("backends", "get_backend", "set_backend", "describe_device", "synchronize", "memory"),
    "trim_memory",  # test_registering
    *("dispose", "keep", "tidy", "tree_map", "explain", "kernels_for", "run_kernel"),
    *("register_decomposition", "register_gradient", "register_kernel", "unregister_gradient"),
    *("unregister_kernel", "custom_grad", "grad", "stop_gradient", "value_and_grad", "vjp"),
    *("dispose_variables", "variable_grads", "jvp", "jacobian", "hessian", "checkpoint"),
    *("compile", "vmap", "linearize", "jacfwd", "jacrev"),  # test_compile, test_vmap, ...
    *("scan", "map", "associative_scan", "cond", "switch"),  # test_control_flow
    *("while_loop", "fori_loop"),
    *("register_tree", "unregister_tree", "static_field"),  # test_tree_nodes
    *("devices", "find_backend", "register_backend", "remove_backend", "from_dlpack", "load"),
    *("save", "copy_registered_kernels", "debug", "profile", "time", "trace_dispatch"),
    *("can_cast", "finfo", "iinfo", "isdtype", "result_type"),
    "einsum",  # test_contraction
    "random_crop",  # test_image_parts
    *("lstm", "gru"),  # test_recurrent_layers
    *("basic_lstm_cell", "multi_rnn_cell", "dropout"),  # test_recurrent_cells, test_regularization
}


def functions():
    """Return the public functions by name."""
    result = {}
    for module in (tp, tp.nn, tp.losses, tp.image):
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                result[name] = getattr(module, name)
    return result


FUNCTIONS = functions()


def derived_call(function):
    """Return the call of a function that no table names: X for each argument that it requires."""
    parameters = inspect.signature(function).parameters.values()
    required = [
        at for at in parameters if at.default is at.empty and at.kind is not at.KEYWORD_ONLY
    ]
    return [X] * len(required), []


DERIVED = FUNCTIONS.keys() - CALLS.keys() - OTHER_TESTS
CALLS.update({name: derived_call(FUNCTIONS[name]) for name in sorted(DERIVED)})
