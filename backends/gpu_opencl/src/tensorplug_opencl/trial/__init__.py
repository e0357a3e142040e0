"""Tries each driver in a separate process before the user's process uses it.

``parent`` runs the trials and ``child`` is the process of one trial, which ``process`` starts
and asks. ``checks`` has the programs and the numbers that they must compute, ``stages`` the limits
that follow from failures, and ``verdict`` the result that is remembered.
"""
