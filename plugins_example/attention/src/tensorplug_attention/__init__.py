"""Attention as an op of tensorplug: ``scaled_dot_product_attention(q, k, v)``."""

from __future__ import annotations

from tensorplug_attention.op import ATTENTION, ATTENTION_GRAD, scaled_dot_product_attention

__all__ = ["ATTENTION", "ATTENTION_GRAD", "scaled_dot_product_attention"]
