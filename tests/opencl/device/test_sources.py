"""The texts that ``tp.explain`` shows of the backend's programs."""

from __future__ import annotations

import tensorplug as tp


def test_explanations_show_the_program_of_each_call():
    rows = tp.TensorType(tp.float32, (6, 4))
    gather = ("GatherV2", [rows, tp.TensorType(tp.int32, (2,))], {"axis": 0, "batch_dims": 0})
    first, second = (tp.explain(*gather, backend="opencl", source=True) for _ in range(2))
    (source,) = first.sources
    assert source.startswith("// GatherV2")
    assert second.sources == first.sources
    product = tp.explain(lambda x: tp.exp(x) * 2, [rows], backend="opencl", source=True)
    assert [len(call.sources) for call in product.inner] == [1, 1]
