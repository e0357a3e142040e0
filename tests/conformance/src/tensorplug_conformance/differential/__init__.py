"""Differential runs: where do two backends part, in a program of the user?"""
