"""A driver is tried in a process of its own before it is used in the user's.

``parent`` runs the trials, ``child`` is what they run, ``checks`` what a driver must compute,
``stages`` what a failure costs, ``verdict`` what is remembered.
"""
