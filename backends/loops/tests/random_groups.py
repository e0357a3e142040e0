"""Random groups of the whole language, and arrays for them: the same for the same seed."""

from __future__ import annotations

import numpy as np

from tensorplug.plugin import Group, GroupInput, GroupOutput, Reduction, TensorType, groups
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex

DTYPES = [
    *[dt.float32] * 4,
    *(dt.float64, dt.float16, dt.bfloat16, dt.int8, dt.uint8, dt.int32, dt.int64, dt.bool_),
]
LENGTHS = [1, 1, 2, 3, 4, 7, 18, 33]
OUTSIDE = {"float": -2.0, "signed": -3, "unsigned": 3, "bool": True}


class Draft:
    """A group that is being made, of a ``random.Random``."""

    def __init__(self, random):
        self.random = random
        self.shape = tuple(random.choice(LENGTHS) for _ in range(random.randint(0, 3)))
        if len(self.shape) == 1 and random.random() < 0.4:
            self.shape = (random.choice([0, 9000, 70000]),)
        if len(self.shape) == 2 and random.random() < 0.15:
            self.shape = random.choice([(300, 40), (1030, 33), (20000, 2), (3, 9000)])
        self.numbers = np.random.default_rng(random.randrange(1 << 30))
        self.inputs, self.arrays, self.leaves = [], [], []

    def spans(self):
        return tuple(self.random.random() < 0.7 for _ in self.shape)

    def array(self, dtype, shape, low=-4, high=5):
        if dtype is dt.bool_:
            return self.numbers.random(shape) < 0.5
        low = 0 if dtype in dt.UNSIGNED else low
        return self.numbers.integers(low, high, shape).astype(dtype.numpy)

    def add(self, operand, array):
        self.leaves.append(ex.parameter(len(self.inputs), operand.type.dtype))
        self.inputs.append(operand)
        self.arrays.append(array)

    def along(self, spans):
        return tuple(n for n, spanned in zip(self.shape, spans, strict=True) if spanned)

    def add_dense(self, dtype, low=-4, high=5):
        spans = self.spans()
        shape = self.along(spans)
        self.add(GroupInput(TensorType(dtype, shape), spans), self.array(dtype, shape, low, high))

    def index(self, length):
        """Return an index, the least length of a buffer that holds it, whatever its sign."""
        random = self.random
        at, low, high = ex.constant(random.randint(-2, 3), dt.int64), 0, 0
        low = high = at.value
        for axis, size in enumerate(self.shape):
            step = random.choice([0, 0, 1, 1, 2, -1])
            if step:
                at = at + ex.axis(axis) * step
                ends = (0, step * (size - 1))
                low, high = low + min(ends), high + max(ends)
        whole = [leaf for leaf in self.leaves if leaf.dtype is dt.int64]
        if whole and random.random() < 0.5:
            at, low, high = at + random.choice(whole) * length, low - 4 * length, high + 4 * length
        if random.random() < 0.2:
            at, low, high = ex.apply("floor_divide", at, 2), low // 2, high // 2
        return at, low, high

    def add_mapped(self, dtype):
        random = self.random
        index, shape = [], []
        outside = None
        if random.random() < 0.6:
            outside = OUTSIDE[dtype.kind]
        for _ in range(random.randint(1, 1 if 70000 in self.shape else 2)):
            at, low, high = self.index(1)
            if outside is None:
                at, length = at - low, high - low + 1
            else:
                length = random.choice([1, 3, max(1, high), 50])
            index.append(at)
            shape.append(max(1, length))
        type_ = TensorType(dtype, tuple(shape))
        operand = groups.mapped(type_, index, self.shape, self.inputs, outside=outside)
        self.add(operand, self.array(dtype, type_.shape))

    def expression(self, dtype, leaves, depth=3):
        """Return an expression whose value is a small whole number where its leaves' are."""
        random = self.random
        own = [leaf for leaf in leaves if leaf.dtype is dtype]
        if own and (depth == 0 or random.random() < 0.2):
            return random.choice(own)
        if depth == 0:
            other = [leaf for leaf in leaves if leaf.dtype is not dtype]
            if dtype is dt.int64 and self.shape and random.random() < 0.5:
                return ex.axis(random.randrange(len(self.shape)))
            if other and random.random() < 0.7:
                return ex.cast(random.choice(other), dtype)
            return ex.constant(random.choice([0, 1, 2, 5]), dtype)

        def part(kind=dtype):
            return self.expression(kind, leaves, depth - 1)

        if dtype is dt.bool_:
            if random.random() < 0.5:
                kind = random.choice(DTYPES)
                return ex.apply(
                    random.choice(["less", "equal", "less_equal"]), part(kind), part(kind)
                )
            op = random.choice(["logical_and", "logical_or", "bitwise_xor", "maximum"])
            return ex.apply("logical_or" if op == "maximum" else op, part(), part())
        choice = random.random()
        if choice < 0.15:
            return ex.where(part(dt.bool_), part(), part(), likely=random.random() < 0.3)
        if choice < 0.3:
            return ex.cast(part(random.choice(DTYPES)), dtype)
        ops = ["add", "subtract", "maximum", "minimum", "abs", "negative"]
        ops += ["floor_divide", "remainder", "multiply"]
        if dtype in dt.INTEGER:
            ops += ["bitwise_and", "bitwise_or", "bitwise_left_shift", "bitwise_right_shift"]
        else:
            ops += ["floor", "round", "trunc", "copysign"]
        op = random.choice(ops)
        operands = [part() for _ in range(ex.OPERATIONS[op].operands)]
        if op == "copysign":
            operands[1] = number(operands[1])
        return ex.apply(op, *operands)

    def tame(self, root):
        """Return a number from -8 to 8, which sums and products keep exact."""
        if root.dtype is dt.bool_:
            return root
        if root.dtype in dt.UNSIGNED:
            return ex.apply("minimum", root, 8)
        small = ex.apply("minimum", ex.apply("maximum", root, -8), 8)
        return ex.apply("round", small) if root.dtype in dt.FLOATING else small

    def fold(self, axes, running):
        """Return the first largest number and its position, or the last number."""
        random = self.random
        dtype = random.choice([dt.float32, dt.int32, dt.bfloat16])
        element = self.tame(self.expression(dtype, self.leaves, 2))
        if dtype in dt.FLOATING:  # a NaN is neither less nor equal
            element = number(element)
        at = sum((ex.axis(k) * 100**k for k in range(len(self.shape))), ex.constant(0, dt.int64))
        a, i, b, j = (ex.parameter(k, (dtype, dt.int64)[k % 2]) for k in range(4))
        take = ex.apply("less", a, b) if random.random() < 0.6 else ex.apply("equal", b, b)
        combine = (ex.where(take, b, a), ex.where(take, j, i))
        initial = (ex.constant(-100, dtype), ex.constant(-1, dt.int64))
        return groups.Fold((element, at), initial, combine, axes, running)


def number(root):
    """Return 0 where a float is NaN, whose sign differs between processors."""
    return ex.where(ex.apply("equal", root, root), root, 0)


def draw(random):
    """Return a group and its arrays."""
    made = Draft(random)
    for _ in range(random.randint(1, 3)):
        made.add_dense(random.choice(DTYPES))
    if random.random() < 0.5:
        made.add_dense(dt.int64, -3, 4)
    for _ in range(random.randint(0, 2)):
        made.add_mapped(random.choice(DTYPES))
    shape, rank = made.shape, len(made.shape)
    axes, running = (False,) * rank, False
    if rank and 0 not in shape and random.random() < 0.75:
        running, chosen = random.random() < 0.33, random.randrange(rank)
        axes = tuple(at == chosen or (not running and random.random() < 0.4) for at in range(rank))
    reductions, folds, results = reduce(made, axes, running) if any(axes) else ([], [], [])
    kept = (True,) * rank if running else tuple(not axis for axis in axes)
    outputs = []
    for _ in range(random.randint(1, 2)):
        dtype = random.choice(DTYPES)
        if results and not running and random.random() < 0.5:
            root = ex.cast(random.choice(results), dtype)
            outputs.append(GroupOutput(root, TensorType(dtype, made.along(kept)), kept))
        else:
            root = made.expression(dtype, [*made.leaves, *results])
            if random.random() < 0.25:
                outputs.append(scatter(made, root))
            else:
                outputs.append(GroupOutput(root, TensorType(dtype, shape), (True,) * rank))
    inputs = tuple(made.inputs)
    group = Group("random", shape, inputs, tuple(reductions), tuple(outputs), tuple(folds))
    return group, made.arrays


def reduce(made, axes, running):
    """Return reductions and folds along axes, and what refers to their results."""
    random, leaves = made.random, list(made.leaves)
    reductions, folds, results = [], [], []
    for _ in range(random.randint(0, 2)):
        root = made.tame(made.expression(random.choice(DTYPES), leaves))
        ops = ["max", "min"]
        if root.dtype is not dt.bool_:
            ops += ["sum"] * 2 + ["prod"] * (root.dtype not in dt.FLOATING)
        reductions.append(Reduction(random.choice(ops), root, axes, running))
        results.append(ex.parameter(len(leaves), root.dtype))
        leaves.append(results[-1])
    if np.prod(made.shape) < 10000 and random.random() < 0.5:
        folds.append(made.fold(axes, running))
        results += [
            ex.parameter(len(leaves) + at, root.dtype) for at, root in enumerate(folds[0].elements)
        ]
    return reductions, folds, results


def scatter(made, root):
    """Return an output whose elements meet."""
    random, dtype = made.random, root.dtype
    size = tuple(random.choice([1, 5, 40]) for _ in range(random.randint(1, 2)))
    index = tuple(made.index(1)[0] for _ in size)
    combine = random.choice(["max", "min", "last"] + ["sum", "prod"] * (dtype is not dt.bool_))
    if combine in {"sum", "prod"}:
        root = made.tame(root)
        if combine == "prod" and dtype in dt.FLOATING:
            root = ex.apply("copysign", ex.constant(1, dtype), number(root))
    initial = ex.constant(random.choice([0, 1]), dtype)
    type_, whole = TensorType(dtype, size), (True,) * len(made.shape)
    return GroupOutput(root, type_, whole, index=index, combine=combine, initial=initial)
