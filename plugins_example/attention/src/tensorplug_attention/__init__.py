"""Fused kernels of ``tensorplug.nn.scaled_dot_product_attention`` for cpu and OpenCL."""
