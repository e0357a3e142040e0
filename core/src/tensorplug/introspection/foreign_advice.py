"""Advice for names of other libraries that have no counterpart here."""

from __future__ import annotations

from typing import Final

from tensorplug.tensors.foreign_members import GRADIENTS

_LAYERS: Final = (
    "there are no layers: keep parameters in a dict, and differentiate a function of them with "
    "tensorplug.value_and_grad"
)
_SEED: Final = (
    "there is no global seed: pass tensorplug.random.key(seed) to a function, or draw from "
    "tensorplug.random.Generator(seed)"
)
_DEVICES: Final = (
    "a device is chosen by its backend: tensorplug.set_backend('opencl'), x.to('cpu')"
)
_RECORDING: Final = (
    "nothing is recorded outside tensorplug.grad and the like; inside, "
    "tensorplug.stop_gradient(x) makes a constant"
)
_FLAGS: Final = (
    "no floating-point flags are kept: tensorplug.debug raises at the first NaN or infinity"
)
_READ: Final = "read it with NumPy, and pass the array to tensorplug.asarray"

# How to do it here, where no single function of ours does.
ADVICE: Final = {
    "adaptive_avg_pool2d": "for output size 1, take tensorplug.mean over the axes of the image",
    "adaptive_max_pool2d": "for output size 1, take tensorplug.max over the axes of the image",
    "addmm": "write c + a @ b",
    "amp": "use tensorplug.autocast, and with float16 tensorplug.train.LossScaled",
    "angle": "write tensorplug.atan2(tensorplug.imag(x), tensorplug.real(x))",
    "apply_along_axis": "tensorplug.vmap maps a function over an axis",
    "autograd": GRADIENTS,
    "average": "write tensorplug.sum(w * x) / tensorplug.sum(w), or tensorplug.mean(x)",
    "backward": GRADIENTS,
    "baddbmm": "write c + a @ b",
    "block": "write tensorplug.concat of rows that are tensorplug.concat of blocks",
    "c_": "use tensorplug.column_stack",
    "cbrt": "write tensorplug.sign(x) * tensorplug.abs(x) ** (1 / 3)",
    "cdist": "write tensorplug.linalg.vector_norm(a[:, None] - b, axis=-1)",
    "copyto": "write x[...] = y",
    "cosine_similarity": "write 1 - tensorplug.losses.cosine_distance(a, b, axis)",
    "cuda": _DEVICES,
    "cummax": "write tensorplug.associative_scan(tensorplug.maximum, x)",
    "cummin": "write tensorplug.associative_scan(tensorplug.minimum, x)",
    "data_loader": (
        "nothing loads data: shuffle with tensorplug.random.permutation(key, x), and slice batches"
    ),
    "deg2rad": "write x * (tensorplug.pi / 180)",
    "degrees": "write x * (180 / tensorplug.pi)",
    "delete": "write tensorplug.concat([x[:i], x[i + 1 :]])",
    "dense": "write x @ w + b",
    "device": _DEVICES,
    "device_get": "write x.numpy()",
    "divmod": "write divmod(x, y), as for numbers",
    "embedding": "write tensorplug.gather(table, indices)",
    "enable_grad": _RECORDING,
    "errstate": _FLAGS,
    "exp2": "write 2.0 ** x",
    "fliplr": "write tensorplug.flip(x, axis=1)",
    "flipud": "write tensorplug.flip(x, axis=0)",
    "fmod": "write x - y * tensorplug.trunc(x / y); tensorplug.remainder has the sign of y",
    "forward_ad": "use tensorplug.jvp(f, primals, tangents)",
    "frombuffer": _READ,
    "fromfile": _READ,
    "functional": "its functions are in tensorplug.nn and tensorplug.losses",
    "genfromtxt": _READ,
    "geomspace": "write tensorplug.exp(tensorplug.linspace(math.log(start), math.log(stop), num))",
    "glu": "write a, b = tensorplug.split(x, 2, axis=-1), then a * tensorplug.nn.sigmoid(b)",
    "gradient": "of a function, take tensorplug.grad; of samples, tensorplug.diff",
    "hard_sigmoid": "write tensorplug.nn.relu6(x + 3) / 6",
    "hard_swish": "write x * tensorplug.nn.relu6(x + 3) / 6",
    "hvp": "write tensorplug.jvp(tensorplug.grad(f), (x,), (v,))[1]",
    "indices": "use tensorplug.meshgrid of tensorplug.arange, with indexing='ij'",
    "inference_mode": _RECORDING,
    "insert": "write tensorplug.concat([x[:i], y, x[i:]])",
    "intersect1d": "write tensorplug.unique_values(a[tensorplug.isin(a, b)])",
    "is_complex": "write tensorplug.isdtype(x.dtype, 'complex floating')",
    "is_floating_point": "write tensorplug.isdtype(x.dtype, 'real floating')",
    "is_tensor": "write isinstance(x, tensorplug.Tensor)",
    "iscomplexobj": "write tensorplug.isdtype(x.dtype, 'complex floating')",
    "isneginf": "write x == -tensorplug.inf",
    "isposinf": "write x == tensorplug.inf",
    "kl_div": (
        "write tensorplug.sum(p * (tensorplug.log(p) - log_q)); of probabilities, "
        "tensorplug.losses.kl_divergence(p, q)"
    ),
    "layers": _LAYERS,
    "lerp": "write a + w * (b - a)",
    "linalg.cond": "divide the first of tensorplug.linalg.svdvals(x) by the last",
    "linalg.multi_dot": "write a @ b @ c",
    "linear": "write x @ w + b",
    "loadtxt": _READ,
    "logaddexp2": "write tensorplug.log2(2.0 ** a + 2.0 ** b)",
    "lognormal": "write tensorplug.exp(tensorplug.random.normal(key, shape))",
    "lr_scheduler": "schedules such as tensorplug.train.cosine_decay are passed as learning rates",
    "make_jaxpr": "write tensorplug.compile(f).program(x)",
    "manual_seed": _SEED,
    "mark_dynamic": "leave it out: a trace serves all sizes that the function does not read",
    "masked_fill": "write tensorplug.where(mask, value, x)",
    "matrix_diag": "write x[..., None] * tensorplug.eye(x.shape[-1])",
    "mish": "write x * tensorplug.tanh(tensorplug.nn.softplus(x))",
    "modf": "write x - tensorplug.trunc(x) and tensorplug.trunc(x)",
    "module": _LAYERS,
    "nanargmax": "write tensorplug.argmax of x with -tensorplug.inf for each NaN",
    "nanargmin": "write tensorplug.argmin of x with tensorplug.inf for each NaN",
    "nancumsum": "write tensorplug.cumsum(tensorplug.where(tensorplug.isnan(x), 0, x))",
    "narrow": "write x[start : start + length]",
    "ndim": "write x.ndim",
    "no_grad": _RECORDING,
    "normalize": "write x / tensorplug.linalg.vector_norm(x, axis=-1, keepdims=True)",
    "numel": "write x.size",
    "piecewise": "nest tensorplug.where",
    "place": "write x[mask] = y",
    "pmap": "nothing maps over devices: tensorplug.vmap maps over an axis, on one device",
    "printoptions": "tensors print as NumPy's arrays do: use numpy.printoptions(...)",
    "ptp": "write tensorplug.max(x) - tensorplug.min(x)",
    "put": "write x[indices] = y",
    "putmask": "write x[mask] = y",
    "r_": "use tensorplug.concat",
    "rad2deg": "write x * (180 / tensorplug.pi)",
    "radians": "write x * (tensorplug.pi / 180)",
    "rand_like": "write tensorplug.random.uniform(key, x.shape)",
    "randn_like": "write tensorplug.random.normal(key, x.shape)",
    "ravel_multi_index": "write row * width + column",
    "register_dataclass": "dataclasses are trees; tensorplug.static_field marks static fields",
    "rot90": "write tensorplug.flip(tensorplug.swapaxes(x, 0, 1), axis=0)",
    "savetxt": "write numpy.savetxt(path, x.numpy())",
    "seed": _SEED,
    "select": "nest tensorplug.where",
    "sequential": _LAYERS,
    "set_default_device": _DEVICES,
    "set_default_dtype": "pass dtype= where you make a tensor; numbers become float32 or int32",
    "set_grad_enabled": _RECORDING,
    "set_printoptions": "tensors print as NumPy's arrays do: write numpy.set_printoptions(...)",
    "set_random_seed": _SEED,
    "seterr": _FLAGS,
    "shape": "write x.shape",
    "size": "write x.size",
    "softsign": "write x / (1 + tensorplug.abs(x))",
    "t": "write x.T",
    "tanhshrink": "write x - tensorplug.tanh(x)",
    "tri": "write tensorplug.tril(tensorplug.ones((n, m)))",
    "tril_indices": "write tensorplug.nonzero(tensorplug.tril(tensorplug.ones((n, n))))",
    "triu_indices": "write tensorplug.nonzero(tensorplug.triu(tensorplug.ones((n, n))))",
    "union1d": "write tensorplug.unique_values(tensorplug.concat([a, b]))",
    "special.gamma": "for x > 0, write tensorplug.exp(tensorplug.special.gammaln(x))",
    "unravel_index": "write i // width and i % width",
    "vander": "write x[:, None] ** tensorplug.arange(n - 1, -1, -1)",
}
