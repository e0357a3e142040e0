"""Statistics and special functions that neither TensorFlow.js nor the array API standard has.

Once this is installed, they are public functions of ``tensorplug``: ``tp.quantile``,
``tp.special.logit``.
"""
