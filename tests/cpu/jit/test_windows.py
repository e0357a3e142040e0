"""Native loops over windows (convolution, depthwise, pooling) against sums over links."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tensorplug.plugin import Window
from tensorplug_cpu.jit.codegen import functions
from tensorplug_cpu.jit.families import convolution, depthwise, pooling
from tensorplug_cpu.jit.loops import calls, partitions, strips, tap_lists

pytest.importorskip("llvmlite")

# size, taps, stride, dilation, before, after
AXES = {
    "same": (9, 3, 1, 1, 1, 1),
    "valid": (12, 4, 1, 1, 0, 0),
    "point": (7, 1, 1, 1, 0, 0),
    "sparse point": (9, 1, 3, 1, 0, 0),
    "stride": (11, 3, 2, 1, 1, 1),
    "tiles": (10, 2, 2, 1, 0, 0),
    "rest": (11, 2, 2, 1, 0, 0),
    "dilated": (13, 3, 1, 3, 2, 1),
    "all": (17, 3, 3, 2, 1, 4),
    "no common divisor": (12, 4, 2, 3, 3, 0),
    "beyond": (3, 2, 1, 1, 4, 5),  # windows of nothing but padding
    "one": (1, 1, 1, 1, 0, 0),
    "narrow": (3, 3, 1, 1, 0, 0),
    "long": (40, 5, 1, 1, 2, 2),
    "odd": (29, 3, 1, 1, 1, 1),  # tiles overlap
}
GEOMETRIES = [
    ("same", "same"),
    ("valid", "long"),
    ("point", "point"),
    ("sparse point", "stride"),
    ("stride", "all"),
    ("tiles", "tiles"),
    ("rest", "tiles"),
    ("dilated", "no common divisor"),
    ("all", "dilated"),
    ("beyond", "same"),
    ("same", "beyond"),
    ("long", "narrow"),
    ("one", "one"),
    ("same", "odd"),
    ("same", "rest", "stride"),
    ("one", "same", "long"),
]
SIZES = [  # images, channels, filters, dtype
    (1, 1, 1, "float32"),
    (2, 3, 17, "float64"),
    (1, 16, 8, "float32"),
    (3, 5, 32, "float64"),
    (2, 70, 33, "float32"),
    (17, 2, 48, "float32"),
]
CHANNELS = [  # images, channels, dtype
    (1, 5, "float32"),
    (3, 16, "float64"),
    (2, 64, "float32"),
    (1, 70, "float64"),
    (1, 96, "float32"),
]
DTYPES = ["float32", "float64"]


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    """Native loops even where they do not pay, in as many pieces as there may be."""
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", "always")
    monkeypatch.setattr(convolution, "_FEW", 1)
    monkeypatch.setattr(partitions, "_PRODUCTS", 1)


def windows(names):
    result = []
    for name in names:
        size, taps, stride, dilation, before, after = AXES[name]
        out = (size + before + after - (taps - 1) * dilation - 1) // stride + 1
        result.append(Window(size, taps, stride, dilation, before, after, out))
    return tuple(result)


def linked(at):
    """Yield (position, element, tap), each an index of several axes."""
    axes = [
        [
            (position, element, tap)
            for position, tap in product(range(window.out), range(window.filter))
            for element in [position * window.stride + tap * window.dilation - window.before]
            if 0 <= element < window.size
        ]
        for window in at
    ]
    for combination in product(*axes):
        yield tuple(zip(*combination, strict=True))


def arrays(at, batch, channels, filters, dtype):
    """Return image, filter and dy: multiples of 1/8, so that every sum below is exact."""
    rng = np.random.default_rng(7)
    sizes, taps, outs = zip(*((w.size, w.filter, w.out) for w in at), strict=True)
    shapes = ((batch, *sizes, channels), (*taps, channels, filters), (batch, *outs, filters))
    return [(rng.integers(-8, 9, shape) / 8).astype(dtype) for shape in shapes]


def same(actual, expected, dtype):
    assert (actual.dtype, actual.shape) == (np.dtype(dtype), expected.shape)
    np.testing.assert_array_equal(actual, expected.astype(dtype))


@pytest.mark.parametrize(("batch", "channels", "filters", "dtype"), SIZES)
@pytest.mark.parametrize("names", GEOMETRIES)
def test_convolution(names, batch, channels, filters, dtype):
    at = windows(names)
    x, taps, dy = arrays(at, batch, channels, filters, dtype)
    forward, image, gradient = (np.zeros(part.shape) for part in (dy, x, taps))
    wide = [part.astype("float64") for part in (x, taps, dy)]
    for position, element, tap in linked(at):
        here, there = (slice(None), *position), (slice(None), *element)
        forward[here] += wide[0][there] @ wide[1][tap]
        image[there] += wide[2][here] @ wide[1][tap].T
        gradient[tap] += wide[0][there].T @ wide[2][here]
    how = (at, batch, taps.shape, np.dtype(dtype))
    same(convolution.forward(*how)(x, taps), forward, dtype)
    same(convolution.gradient_of_image(*how)(dy, taps), image, dtype)
    same(convolution.gradient_of_filter(*how)(x, dy), gradient, dtype)


@pytest.mark.parametrize("products", [20_000, 1 << 30])
@pytest.mark.parametrize("names", GEOMETRIES)
def test_pieces_of_several_images(monkeypatch, names, products):
    monkeypatch.setattr(partitions, "_PRODUCTS", products)
    test_convolution(names, 17, 2, 48, "float32")


@pytest.mark.parametrize(("batch", "channels", "dtype"), CHANNELS)
@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("names", [names for names in GEOMETRIES if len(names) == 2])
def test_depthwise(names, batch, channels, dtype, multiplier):
    at = windows(names)
    x, taps, _ = arrays(at, batch, channels, multiplier, dtype)
    dy = arrays(at, batch, 1, channels * multiplier, dtype)[2]
    forward, image, gradient = (np.zeros(part.shape) for part in (dy, x, taps))
    wide = [part.astype("float64") for part in (x, taps, dy)]
    for position, element, tap in linked(at):
        here, there = (slice(None), *position), (slice(None), *element)
        upstream = wide[2][here].reshape(batch, channels, multiplier)
        forward[here] += (wide[0][there][..., None] * wide[1][tap]).reshape(batch, -1)
        image[there] += (upstream * wide[1][tap]).sum(-1)
        gradient[tap] += (wide[0][there][..., None] * upstream).sum(0)
    how = (at, batch, taps.shape, np.dtype(dtype))
    same(depthwise.forward(*how)(x, taps), forward, dtype)
    same(depthwise.gradient_of_image(*how)(dy, taps), image, dtype)
    same(depthwise.gradient_of_filter(*how)(x, dy), gradient, dtype)


@pytest.mark.parametrize("module", [convolution, depthwise])
@pytest.mark.parametrize("channels", [3, 40])
@pytest.mark.parametrize("epilogue", ["linear", "relu", "relu6", "slope"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_endings(module, channels, epilogue, dtype):
    """Bias and activation; NaN stays. Dense sums of 3 x 3 x 70 channels come in blocks."""
    at = windows(("same", "long"))
    depth = 70 if module is convolution else channels
    columns = channels if module is convolution else 1
    x, taps, _ = arrays(at, 2, depth, columns, dtype)
    x[1, 0, 0, 0] = np.nan
    how = (at, 2, taps.shape, np.dtype(dtype))
    rng = np.random.default_rng(2)
    bias, slope = ((rng.integers(-8, 9, channels) / 8).astype(dtype) for _ in range(2))
    run = module.forward(*how)
    plain = run(x, taps) + bias
    assert np.isnan(plain).any()
    assert (plain < 0).any()
    assert (plain > 6).any() or module is depthwise
    expected = {
        "linear": plain,
        "relu": np.maximum(plain, 0),
        "relu6": np.clip(plain, 0, 6),
        "slope": np.where(plain < 0, plain * slope, plain),
    }[epilogue]
    same(run(x, taps, bias, slope, epilogue), expected, dtype)


@pytest.fixture(params=[14, 4], ids="up to {} places".format)
def in_strips(monkeypatch, request):
    """Rows in strips even where they do not pay, of so many places."""
    monkeypatch.setattr(strips, "_LEAST", 1)
    monkeypatch.setattr(strips, "_MOST_POSITIONS", request.param)


@pytest.mark.usefixtures("in_strips")
@pytest.mark.parametrize(("batch", "channels", "dtype"), CHANNELS)
@pytest.mark.parametrize("names", [names for names in GEOMETRIES if len(names) == 2])
def test_depthwise_in_strips(names, batch, channels, dtype):
    test_depthwise(names, batch, channels, dtype, 1)


@pytest.mark.usefixtures("in_strips")
@pytest.mark.parametrize("channels", [1, 2, 40])
@pytest.mark.parametrize("epilogue", ["linear", "relu", "relu6", "slope"])
def test_endings_in_strips(channels, epilogue):
    test_endings(depthwise, channels, epilogue, "float32")


def test_which_rows_have_strips(monkeypatch):
    """Those whose windows overlap, and have all taps between the first places and the last."""
    many = 1 << 20

    def cut(name, products=many, kind="weighted", pixel_bytes=256):
        return strips.find_strips(windows((name,))[0], pixel_bytes, products, kind)

    weighted = {name for name in AXES if cut(name)}
    assert weighted == set(AXES) - {"point", "sparse point", "tiles", "rest", "one", "all"}
    assert {name for name in AXES if cut(name, kind="average")} == {
        *("same", "valid", "dilated", "beyond", "narrow", "long", "odd")
    }
    assert cut("valid", kind="largest") is None
    assert cut("same", kind="largest") is not None
    assert cut("same", products=1 << 10) is None
    assert cut("same", pixel_bytes=2048, kind="average") is None
    assert len(cut("long", pixel_bytes=2048).first) == 6
    monkeypatch.setattr(strips, "_MOST_POSITIONS", 4)
    long = cut("long")
    assert (long.first, long.last) == (
        ((2, 5), (1, 5), (0, 5), (0, 5)),
        ((0, 5), (0, 5), (0, 4), (0, 3)),
    )
    for out in range(1, 60):  # no strip between the two reaches into them: it would read beyond
        found = strips.find_strips(Window(out, 3, 1, 1, 1, 1, out), 256, many, "weighted")
        rest = out - len(found.first) - len(found.last)
        assert (found.between > 0) == (rest > 0)
        assert found.between <= max(rest, 0)
    wide = Window(40, 8, 1, 1, 0, 0, 33)
    far = Window(40, 3, 1, 9, 9, 9, 40)
    for window in (wide, far):
        assert strips.find_strips(window, 256, many, "weighted") is None


def chosen(values):
    """Return the index of the first NaN, else of the first largest."""
    undefined = np.isnan(values)
    numbers = np.where(undefined, -np.inf, values)
    return np.where(undefined.any(0), undefined.argmax(0), numbers.argmax(0))


@pytest.mark.parametrize(("batch", "channels", "dtype"), CHANNELS)
@pytest.mark.parametrize("names", [names for names in GEOMETRIES if "beyond" not in names])
def test_pooling(names, batch, channels, dtype):
    at = windows(names)
    rng = np.random.default_rng(3)
    x, _, dy = arrays(at, batch, channels, channels, dtype)
    x[rng.random(x.shape) < 0.03] = np.nan
    x[rng.random(x.shape) < 0.03] = -np.inf
    dy.flat[0] = np.inf  # which must not reach the elements that lost
    largest, given, shared = (np.zeros(part.shape) for part in (dy, x, x))
    finite = np.nan_to_num(dy, posinf=1)
    under: dict = {}
    for position, element, _ in linked(at):
        under.setdefault(position, []).append(element)
    images, lanes = np.indices((batch, channels))
    for position, elements in under.items():
        here = (slice(None), *position)
        values = np.stack([x[(slice(None), *element)] for element in elements])
        winner = chosen(values)
        largest[here] = np.take_along_axis(values, winner[None], 0)[0]
        places = np.array(elements)[winner]
        np.add.at(given, (images, *np.moveaxis(places, -1, 0), lanes), dy[here])
        for element in elements:
            shared[(slice(None), *element)] += finite[here]
    how = (at, batch, channels, np.dtype(dtype))
    same(pooling.WindowValues(*how, "largest")(x), largest, dtype)
    adding = any(w.stride < (w.filter - 1) * w.dilation + 1 for w in at)
    whole = all(w.stride == w.filter and w.out * w.stride == w.size for w in at)
    gradient = pooling.FirstEqual(*how, adding=adding, covered=whole)
    same(gradient(dy, x, largest.astype(dtype)), given, dtype)
    ones = np.ones(x.shape, dtype)
    same(pooling.WindowValues(*how, "average")(ones), np.ones(dy.shape), dtype)
    same(pooling.WindowValues(*how, "sum", back=True)(finite), shared, dtype)


@pytest.mark.usefixtures("in_strips")
@pytest.mark.parametrize(("batch", "channels", "dtype"), CHANNELS)
@pytest.mark.parametrize("names", [names for names in GEOMETRIES if "beyond" not in names])
def test_pooling_in_strips(names, batch, channels, dtype):
    test_pooling(names, batch, channels, dtype)


@pytest.mark.parametrize("names", [("same", "stride"), ("stride", "same"), ("all", "long")])
def test_averages(monkeypatch, names):
    monkeypatch.setattr(strips, "_LEAST", 1)
    at = windows(names)
    x = arrays(at, 2, 6, 1, "float64")[0]
    result = pooling.WindowValues(at, 2, 6, np.dtype("float64"), "average")(x)
    expected = np.zeros(result.shape)
    count = np.zeros(result.shape)
    for position, element, _ in linked(at):
        expected[(slice(None), *position)] += x[(slice(None), *element)]
        count[(slice(None), *position)] += 1
    np.testing.assert_allclose(result, expected / count, rtol=1e-15)


@pytest.mark.parametrize("channels", [1, 70])
def test_sums_do_not_depend_on_threads(monkeypatch, channels):
    at = windows(("same", "long"))
    rng = np.random.default_rng(5)
    x = rng.standard_normal((5, 9, 40, channels), dtype="float32")
    taps = rng.standard_normal((3, 5, channels, 33), dtype="float32")
    dy = rng.standard_normal((5, 9, 40, 33), dtype="float32")
    how = (at, 5, taps.shape, np.dtype("float32"))
    results = []
    for shared in (1, 1 << 60):
        monkeypatch.setattr(calls, "_SHARED", shared)
        results.append(
            [
                convolution.forward(*how)(x, taps),
                convolution.gradient_of_image(*how)(dy, taps),
                convolution.gradient_of_filter(*how)(x, dy),
                depthwise.forward(at, 5, (3, 5, channels, 1), np.dtype("float32"))(
                    x, taps[..., :1]
                ),
                depthwise.gradient_of_filter(at, 5, (3, 5, channels, 1), np.dtype("float32"))(
                    x, x
                ),
            ]
        )
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("width", [16, 32, 64])
def test_vectors_of_every_width(monkeypatch, width):
    """What is written for other processors is right too."""
    monkeypatch.setattr(functions, "vector_bytes", lambda: width)
    test_convolution(("same", "all"), 2, 70, 33, "float32")
    test_convolution(("same", "odd"), 2, 1, 33, "float32")
    test_depthwise(("stride", "dilated"), 2, 70, "float64", 1)
    test_pooling(("rest", "same"), 1, 70, "float32")
    monkeypatch.setattr(strips, "_LEAST", 1)
    test_depthwise(("stride", "long"), 2, 70, "float32", 1)
    test_pooling(("rest", "same"), 1, 70, "float64")


def test_unaligned_memory():
    at = windows(("point", "same"))
    x, taps, dy = arrays(at, 2, 8, 16, "float64")

    def moved(array):
        memory = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
        memory[...] = array
        assert not memory.flags.aligned
        return memory

    how = (at, 2, taps.shape, np.dtype("float64"))
    run = convolution.forward(*how)
    same(run(moved(x), moved(taps)), run(x, taps), "float64")
    gradient = convolution.gradient_of_filter(*how)
    same(gradient(moved(x), moved(dy)), gradient(x, dy), "float64")


def test_links_of_two_axes():
    """Links of a row and a column as one axis are those of each pair of places."""
    at = windows(("same", "all"))
    axes = [
        tap_lists.TapLists.forward(window).scaled(step, 0)
        for window, step in zip(at, (100, 1), strict=True)
    ]
    both = axes[0].beside(axes[1])
    expected = [
        [row + column for row in some for column in others]
        for some, others in product(*map(listed, axes))
    ]
    assert listed(both) == expected


def listed(found):
    return [part.tolist() for part in np.split(found.elements, found.starts[1:-1])]


@pytest.mark.parametrize("setting", ["0", "1"])
def test_small_work_stays_with_numpy(monkeypatch, setting):
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", setting)
    at = windows(("same", "same"))
    assert convolution.forward(at, 1, (3, 3, 2, 2), np.dtype("float32")) is None
    assert depthwise.forward(at, 1, (3, 3, 2, 1), np.dtype("float32")) is None
    assert not pooling.suits(at, 1, 4, np.dtype("float32"), "largest")


def test_long_averages_stay_with_numpy():
    """They are added in pairs there."""
    window = Window(20, 10, 1, 1, 0, 0, 11)
    how = ((window, window), 1, 8, np.dtype("float32"))
    assert not pooling.suits(*how, "average")
    assert pooling.suits(*how, "largest")
