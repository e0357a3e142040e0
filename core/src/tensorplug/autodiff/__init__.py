"""Differentiation: the tape, gradients, Jacobians, custom gradients, checkpoints."""
