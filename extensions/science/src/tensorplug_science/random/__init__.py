"""Distributions beyond those of TensorFlow.js. The functions live in ``tensorplug.random``."""
