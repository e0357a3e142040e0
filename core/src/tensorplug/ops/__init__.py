"""Ops by family: the kernel specs, and the public functions that call them.

A file here declares a spec, or helps one that does; ``tensorplug.library`` composes functions of
these. ``__all__`` of a family lists its public functions. The first part of its path below this
package says where they are public: those of ``nn/activation.py`` in ``tensorplug.nn``, those of
``strings.py`` in ``tensorplug.strings``. Where no public module has that name, as for
``reduction.py`` and ``indexing/slicing.py``, they are functions of ``tensorplug`` itself.
"""
