"""Tries each driver in a separate process before the user's process uses it.

``parent`` runs the trials and ``child`` is the process of one trial. ``checks`` has what a driver
must compute, ``stages`` what a failure costs, and ``verdict`` what is remembered.
"""
