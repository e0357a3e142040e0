"""Calls of operators of onnxruntime's domain, and their results by formulas in float64."""

from __future__ import annotations

import math

import numpy as np

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def bytes_(*shape, dtype=np.uint8):
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def f(number):
    return np.array(number, np.float32)


def u(number):
    return np.array(number, np.uint8)


def real(q, scale, zero):
    return (q.astype(np.float64) - np.float64(zero)) * np.float64(scale)


def quantized(x, scale, zero, dtype=np.uint8):
    limits = np.iinfo(dtype)
    return np.clip(np.rint(x / np.float64(scale)) + zero, limits.min, limits.max).astype(dtype)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def gelu(x):
    return x / 2 * (1 + np.vectorize(math.erf)(x.astype(np.float64) / math.sqrt(2)))


def fast_gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layer_norm(x, gamma, beta=0.0, epsilon=1e-12):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + epsilon) * gamma + beta


def rms_norm(x, gamma, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * gamma


def heads(x, count):
    return x.reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)


def attend(q, k, v, bias=0.0, scale=None):
    """Return the attention of heads, joined."""
    k, v = (np.repeat(one, q.shape[1] // one.shape[1], axis=1) for one in (k, v))
    scores = q @ k.swapaxes(2, 3) * (1 / math.sqrt(q.shape[3]) if scale is None else scale) + bias
    y = softmax(scores) @ v
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)


def causal(queries, keys):
    seen = np.tril(np.ones((queries, keys)), keys - queries)
    return np.where(seen, 0.0, -np.inf)


def turned(x, positions, cos, sin, interleaved=False):
    """Rotate pairs of features of [batch, heads, places, features] as complex numbers."""
    by = (cos + 1j * sin)[positions][:, None]
    pairs = x[..., ::2] + 1j * x[..., 1::2] if interleaved else np.add(*halves(x))
    y = pairs * by
    if interleaved:
        return np.stack([y.real, y.imag], -1).reshape(x.shape)
    return np.concatenate([y.real, y.imag], -1)


def halves(x):
    half = x.shape[-1] // 2
    return x[..., :half], 1j * x[..., half:]


def dynamic(x):
    """Return x quantized to bytes by its extrema, as real numbers."""
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = np.float64(np.float32((np.float32(high) - np.float32(low)) / np.float32(255)))
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return real(quantized(x, scale, zero), scale, zero)


def packed(q, bits):
    """Return numbers of few bits in bytes along the last axis, the first one lowest."""
    each = 8 // bits
    parts = q.reshape(*q.shape[:-1], -1, each).astype(np.int64)
    return (parts << (bits * np.arange(each))).sum(-1).astype(np.uint8)


A, B = bytes_(2, 3, 4), bytes_(3, 1)
IMAGES, FILTERS = floats(1, 4, 5, 6), floats(3, 4, 3, 3)
X, SKIP, GAMMA, BETA, BIAS = floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), floats(8)
M, N = floats(3, 5), floats(5, 4)
Q, K, V = floats(2, 3, 8), floats(2, 4, 8), floats(2, 4, 8)
ANGLES = np.arange(6)[:, None] / 10.0 ** np.arange(2)
COS, SIN = np.cos(ANGLES).astype(np.float32), np.sin(ANGLES).astype(np.float32)
PLACES = np.array([[0, 1, 2], [3, 4, 5]])
WEIGHTS, W_BIAS = floats(8, 24), floats(24)
PROJECTED = X.astype(np.float64) @ WEIGHTS + W_BIAS
PQ, PK, PV = (heads(one, 2) for one in np.split(PROJECTED, 3, axis=2))
LENGTHS = np.array([2, 3], np.int32)
PADDED = np.where(np.arange(3) < LENGTHS[:, None], 0.0, -10000.0)[:, None, None]
PAST = floats(2, 2, 2, 2, 4)
CODES, CODE_SCALES = RNG.integers(0, 16, (6, 48)), floats(6, 3)
CODE_ZEROS = RNG.integers(0, 16, (6, 4))
ROWS = floats(2, 3, 40)
PAD40 = np.pad(ROWS, [(0, 0), (0, 0), (0, 8)])
EACH = np.repeat(CODE_SCALES, 16, axis=1).astype(np.float64)
TABLE, TYPES, POSITIONS = floats(9, 8), floats(2, 8), floats(7, 8)
IDS, SEGMENTS = np.array([[1, 2, 8], [0, 3, 3]], np.int32), np.array([[0, 1, 1]] * 2, np.int32)
MASK = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
EMBEDDED = TABLE[IDS] + POSITIONS[:3] + TYPES[SEGMENTS]
G_Q, G_K, G_V = floats(2, 1, 64), floats(2, 1, 32), floats(2, 1, 32)
G_PAST = floats(2, 2, 2, 5, 16)  # of keys and values
G_ANGLES = np.arange(6)[:, None] / 10.0 ** np.arange(8)
G_COS, G_SIN = np.cos(G_ANGLES).astype(np.float32), np.sin(G_ANGLES).astype(np.float32)
G_TOTAL = np.array([4, 5], np.int32)  # tokens of each text after the call, less one
STEP = (G_Q, G_K, G_V, *G_PAST, G_TOTAL, np.array(6, np.int32))
PROMPT = floats(1, 4, 64)  # queries, keys and values of 4, 2 and 2 heads of 8


def conv(x, w, bias=0.0):
    """Return the sums of products of planes and filters, without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w.astype(np.float64)) + bias


def gqa(window=None, sink=None, cap=None):
    """Return a step of decoding, with rotary positions and a cache of 5 places, made 6 long."""
    at = G_TOTAL[:, None]
    q = turned(heads(G_Q, 4), at, G_COS, G_SIN)
    new = turned(heads(G_K, 2), at, G_COS, G_SIN), heads(G_V, 2)
    caches = []
    for past, one in zip(G_PAST, new, strict=True):
        cache = np.pad(past, [(0, 0), (0, 0), (0, 1), (0, 0)]).astype(np.float64)
        for text, place in enumerate(G_TOTAL):
            cache[text, :, place] = one[text, :, 0]
        caches.append(cache)
    place = np.arange(6)
    seen = place <= at
    if window:
        seen &= place > at - window
    k, v = (np.repeat(one, 2, axis=1) for one in caches)
    scores = q @ k.swapaxes(2, 3) / math.sqrt(16)
    if cap:
        scores = cap * np.tanh(scores / cap)
    scores = np.where(seen[:, None, None], scores, -np.inf)
    if sink is not None:
        column = np.broadcast_to(sink[:, None, None], (2, 4, 1, 1))
        scores = np.concatenate([scores, column], -1)
    y = softmax(scores)[..., :6] @ v
    return [y.transpose(0, 2, 1, 3).reshape(2, 1, 64), *caches]


def prompt():
    """Return the first call of a text, without a past."""
    parts = np.split(PROMPT, [32, 48], axis=2)
    q, k, v = (heads(one, n) for one, n in zip(parts, (4, 2, 2), strict=True))
    return [attend(q, k, v, causal(4, 4)), k, v]


def lstm(x, w, r, b, w_scale, r_scale):
    """Return the outputs, the last one and the last cell of one direction."""
    inputs = (dynamic(x).reshape(-1, x.shape[2]) @ real(w[0], w_scale, 0)).reshape(
        *x.shape[:2], -1
    )
    h = c = np.zeros((x.shape[1], 3))
    found = []
    for step in inputs:
        gates = step + dynamic(h) @ real(r[0], r_scale, 0) if h.any() else step
        i, o, forget, cell = np.split(gates + b[0, :12] + b[0, 12:], 4, axis=1)
        c = sigmoid(forget) * c + sigmoid(i) * np.tanh(cell)
        h = sigmoid(o) * np.tanh(c)
        found.append(h)
    return [np.stack(found)[:, None], h[None], c[None]]


S8 = bytes_(4, 6, dtype=np.int8)
LSTM = (
    floats(4, 1, 5), bytes_(1, 5, 12, dtype=np.int8), bytes_(1, 3, 12, dtype=np.int8),
    floats(1, 24),
)  # fmt: skip
S_SCALES = np.abs(floats(6)) / 100
ONE = u(0), f(0.5)

# By name: operator, inputs, attributes, outputs.
CASES = {
    "add": (
        "QLinearAdd", [A, f(0.1), u(3), B, f(0.2), u(9), f(0.3), u(7)], {},
        [quantized(real(A, 0.1, 3) + real(B, 0.2, 9), 0.3, 7)]),
    "multiply, without zero points": (
        "QLinearMul", [A, f(0.1), None, B, f(0.2), None, f(5)], {},
        [quantized(real(A, 0.1, 0) * real(B, 0.2, 0), 5, 0)]),
    "choose": (
        "QLinearWhere", [A > 99, A, f(0.1), u(3), B, f(0.2), u(9), f(0.3), u(7)], {},
        [quantized(np.where(A > 99, real(A, 0.1, 3), real(B, 0.2, 9)), 0.3, 7)]),
    "join": (
        "QLinearConcat", [f(0.3), u(7), A, f(0.1), u(3), A[:, :1], f(0.2), u(9)], {"axis": 1},
        [quantized(np.concatenate([real(A, 0.1, 3), real(A[:, :1], 0.2, 9)], 1), 0.3, 7)]),
    "sigmoid": (
        "QLinearSigmoid", [A, f(0.05), u(128), f(1 / 256), u(0)], {},
        [quantized(sigmoid(real(A, 0.05, 128)), 1 / 256, 0)]),
    "leaky": (
        "QLinearLeakyRelu", [A, f(0.1), u(128), f(0.1), u(30)], {"alpha": 0.3},
        [quantized(np.where(A > 128, 1, np.float32(0.3)) * real(A, 0.1, 128), 0.1, 30)]),
    "softmax": (
        "QLinearSoftmax", [A, f(0.05), u(128), f(1 / 256), u(0)], {"axis": 1, "opset": 13},
        [quantized(softmax(real(A, 0.05, 128), 1), 1 / 256, 0)]),
    "softmax of opset 11": (
        "QLinearSoftmax", [A, f(0.05), u(128), f(1 / 256), u(0)], {"axis": 1, "opset": 11},
        [quantized(softmax(real(A, 0.05, 128).reshape(2, 12)), 1 / 256, 0).reshape(A.shape)]),
    "mean": (
        "QLinearReduceMean", [A, f(0.1), u(3), f(0.07), u(5)], {"axes": [1], "keepdims": 0},
        [quantized(real(A, 0.1, 3).mean(1), 0.07, 5)]),
    "mean of planes": (
        "QLinearGlobalAveragePool", [A, f(0.1), u(3), f(0.07), u(5)], {"channels_last": 1},
        [quantized(real(A, 0.1, 3).mean(1, keepdims=True), 0.07, 5)]),
    "pool": (
        "QLinearAveragePool", [A[None], f(0.1), u(3), f(0.07), u(5)], {"kernel_shape": [2, 2]},
        [quantized(
            np.lib.stride_tricks.sliding_window_view(
                real(A[None], 0.1, 3), (2, 2), axis=(2, 3)).mean((-1, -2)), 0.07, 5)]),
    "integers": (
        "MulInteger", [A, u(3), B, u(9)], {},
        [(A.astype(np.int32) - 3) * (B.astype(np.int32) - 9)]),
    "product to floats": (
        "MatMulIntegerToFloat",
        [A, S8, f(0.1), S_SCALES, u(3), np.arange(6, dtype=np.int8), S_SCALES], {},
        [real(A, 0.1, 3) @ real(S8, S_SCALES, np.arange(6)) + S_SCALES]),
    "product of floats by integers": (
        "DynamicQuantizeMatMul", [M[:, :4], S8, S_SCALES], {},
        [dynamic(M[:, :4]) @ real(S8, S_SCALES, 0)]),
    "gemm": (
        "QGemm",
        [A[0], f(0.1), u(3), S8.T.copy(), f(0.2), np.array(1, np.int8),
         np.arange(6, dtype=np.int32)],
        {"transB": 1, "alpha": 0.5},
        [(real(A[0], 1, 3) @ real(S8, 1, 1) + np.arange(6)) * 0.01]),
    "gemm, quantized": (
        "QGemm",
        [A[0], f(0.1), u(3), S8, f(0.2), np.array(1, np.int8), None, f(50), u(128)], {},
        [quantized(real(A[0], 0.1, 3) @ real(S8, 0.2, 1), 50, 128)]),
    "4 bits": (
        "MatMulNBits", [ROWS, packed(CODES, 4).reshape(6, 3, 8), CODE_SCALES],
        {"K": 40, "N": 6, "bits": 4, "block_size": 16},
        [PAD40 @ ((CODES - 8) * EACH).T]),
    "4 bits, zero points, bias": (
        "MatMulNBits",
        [ROWS, packed(CODES, 4).reshape(6, 3, 8), CODE_SCALES, packed(CODE_ZEROS, 4), None,
         BETA[:6]],
        {"K": 40, "N": 6, "bits": 4, "block_size": 16},
        [PAD40 @ ((CODES - np.repeat(CODE_ZEROS[:, :3], 16, 1)) * EACH).T + BETA[:6]]),
    "8 bits": (
        "MatMulNBits", [ROWS, A_8 := bytes_(6, 3, 16), CODE_SCALES],
        {"K": 40, "N": 6, "bits": 8, "block_size": 16},
        [PAD40 @ ((A_8.reshape(6, 48) - 128.0) * EACH).T]),
    "rows of 4 bits": (
        "GatherBlockQuantized",
        [packed(CODES, 4), np.array([[5, 0]]), CODE_SCALES, packed(CODE_ZEROS, 4)],
        {"block_size": 16},
        [((CODES - np.repeat(CODE_ZEROS[:, :3], 16, 1)) * EACH)[[[5, 0]]]]),
    "lstm": (
        "DynamicQuantizeLSTM",
        [*LSTM, None, None, None, None, f([0.01]), np.zeros(1, np.int8), f([0.01]),
         np.zeros(1, np.int8)],
        {"hidden_size": 3}, lstm(*LSTM, 0.01, 0.01)),
    "gelu": ("Gelu", [X], {}, [gelu(X)]),
    "gelu of a sum": ("BiasGelu", [X, BIAS], {}, [gelu(X + BIAS)]),
    "fast gelu": ("FastGelu", [X, BIAS], {}, [fast_gelu(X + BIAS)]),
    "quick gelu": ("QuickGelu", [X], {}, [X * sigmoid(1.702 * X)]),
    "softmax of a sum": (
        "BiasSoftmax", [X, SKIP[:1]], {"axis": 2, "is_inner_broadcast": 0},
        [softmax(X + SKIP[:1])]),
    "rms": (
        "SimplifiedLayerNormalization", [X, GAMMA], {"epsilon": 1e-3}, [rms_norm(X, GAMMA, 1e-3)]),
    "rms of a sum": (
        "SkipSimplifiedLayerNormalization", [X, SKIP, GAMMA, BIAS], {"epsilon": 1e-3},
        [rms_norm(X + SKIP + BIAS, GAMMA, 1e-3), None, None, X + SKIP + BIAS]),
    "layer norm of a sum": (
        "SkipLayerNormalization", [X, SKIP, GAMMA, BETA, BIAS], {},
        [layer_norm(X + SKIP + BIAS, GAMMA, BETA), None, None, X + SKIP + BIAS]),
    "embedding": (
        "EmbedLayerNormalization",
        [IDS, SEGMENTS, TABLE, POSITIONS, TYPES, GAMMA, BETA, MASK], {},
        [layer_norm(EMBEDDED, GAMMA, BETA), np.array([2, 3], np.int32)]),
    "rotary": (
        "RotaryEmbedding", [heads(X, 2).copy(), PLACES, COS, SIN], {},
        [turned(heads(X, 2), PLACES, COS, SIN)]),
    "rotary, neighbours, from a place on": (
        "RotaryEmbedding", [X, np.array([2]), COS, SIN], {"interleaved": 1},
        [turned(heads(X, 2), np.array([[2, 3, 4]]), COS, SIN, interleaved=True)
            .transpose(0, 2, 1, 3).reshape(X.shape)]),
    "attention": (
        "Attention", [X, WEIGHTS, W_BIAS], {"num_heads": 2}, [attend(PQ, PK, PV)]),
    "attention, lengths": (
        "Attention", [X, WEIGHTS, W_BIAS, LENGTHS], {"num_heads": 2},
        [attend(PQ, PK, PV, PADDED)]),
    "attention, mask, causal": (
        "Attention", [X, WEIGHTS, W_BIAS, MASK], {"num_heads": 2, "unidirectional": 1},
        [attend(PQ, PK, PV, PADDED + causal(3, 3))]),
    "attention, past": (
        "Attention", [X, WEIGHTS, W_BIAS, None, PAST], {"num_heads": 2, "unidirectional": 1},
        [attend(PQ, *(both := [np.concatenate([past, new], 2) for past, new in
                               zip(PAST, (PK, PV), strict=True)]), causal(3, 5)),
         np.stack(both)]),
    "attention by integers": (
        "QAttention",
        [A.reshape(1, 6, 4), W_4 := bytes_(4, 12, dtype=np.int8), W_BIAS[:12], f(0.01), f(0.02),
         None, u(128), np.array(0, np.int8)],
        {"num_heads": 2},
        [attend(*(heads(one, 2) for one in np.split(
            real(A.reshape(1, 6, 4), 0.01, 128) @ real(W_4, 0.02, 0) + W_BIAS[:12], 3, 2)))]),
    "heads": (
        "MultiHeadAttention", [Q, K, V, W_BIAS], {"num_heads": 2},
        [attend(*(heads(x + b, 2) for x, b in
                  zip((Q, K, V), np.split(W_BIAS, 3), strict=True)))]),
    "heads, mask": (
        "MultiHeadAttention",
        [Q, K, V, None, M4 := np.array([[1, 1, 1, 0], [1, 0, 1, 1]], np.int32)],
        {"num_heads": 2, "mask_filter_value": -50.0},
        [attend(*(heads(x, 2) for x in (Q, K, V)),
                np.where(M4, 0.0, -50.0)[:, None, None])]),
    "groups, a step": (
        "GroupQueryAttention",
        [*STEP, G_COS, G_SIN],
        {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}, gqa()),
    "groups, a window": (
        "GroupQueryAttention",
        [*STEP, G_COS, G_SIN],
        {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, "local_window_size": 2},
        gqa(window=2)),
    "groups, a sink and a cap": (
        "GroupQueryAttention",
        [*STEP, G_COS, G_SIN, None, None, BIAS[:4]],
        {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, "softcap": 2.0},
        gqa(sink=BIAS[:4], cap=2.0)),
    "groups, a prompt": (
        "GroupQueryAttention",
        [PROMPT, None, None, None, None, np.array([3], np.int32), np.array(4, np.int32)],
        {"num_heads": 4, "kv_num_heads": 2}, prompt()),
    "matmul": (
        "FusedMatMul", [M.T.copy(), N.T.copy()], {"transA": 1, "transB": 1, "alpha": 0.5},
        [M.astype(np.float64) @ N * 0.5]),
    "matmul, batches inside": (
        "FusedMatMul", [P := floats(3, 2, 5), R := floats(3, 2, 5)],
        {"transBatchA": 1, "transBatchB": 1, "transB": 1},
        [np.einsum("ibk,jbk->bij", P.astype(np.float64), R)]),
    "gemm with an activation": (
        "FusedGemm", [M, N, BIAS[:4]], {"activation": "LeakyRelu", "activation_alpha": 0.25},
        [np.where((y := M.astype(np.float64) @ N + BIAS[:4]) > 0, y, y / 4)]),
    "convolution with an activation": (
        "FusedConv", [IMAGES, FILTERS, BIAS[:3]], {"activation": "Relu"},
        [np.maximum(conv(IMAGES, FILTERS, BIAS[:3, None, None]), 0)]),
    "convolution of planes": (
        "NhwcConv", [IMAGES.transpose(0, 2, 3, 1).copy(), FILTERS], {},
        [conv(IMAGES, FILTERS).transpose(0, 2, 3, 1)]),
    "triangle": ("Trilu", [M, np.array(1)], {"upper": 0}, [np.tril(M, 1)]),
    "places": ("GatherND", [M, np.array([[0, 1], [2, 4]])], {}, [M[[0, 2], [1, 4]]]),
    "padding": (
        "Pad", [M, np.array([0, 1, 2, 0]), f(9)], {},
        [np.pad(M, [(0, 2), (1, 0)], constant_values=9)]),
    "range": ("Range", [f(1), f(4)], {}, [np.arange(1, 4, dtype=np.float32)]),
}  # fmt: skip
