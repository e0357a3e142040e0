"""Functions that are composed of others, as a third party would write them.

A family here declares no kernel spec. It uses the public functions and ``tensorplug.plugin``
alone. ``import tensorplug as tp`` works while the package is still being assembled, because a
function looks up ``tp.where`` when it is called. ``__all__`` of a family lists its public
functions; its path says in which public module they appear, as in ``tensorplug.ops``.
"""
