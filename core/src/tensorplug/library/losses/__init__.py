"""Loss functions, composed of other ops. They live in ``tensorplug.losses``.

Each computes one loss per element (or per row), multiplies it by ``weights``, which broadcast to
the losses, and reduces them:

- ``"none"``: the weighted losses as they are;
- ``"sum"``: their sum;
- ``"mean"``: their sum divided by the sum of the broadcast weights;
- ``"sum_by_nonzero_weights"``, the default: their sum divided by the number of losses whose
  weight is not 0; NaN if there are none.

By default all weights are 1. The source of the formulas is TensorFlow.js.
"""
