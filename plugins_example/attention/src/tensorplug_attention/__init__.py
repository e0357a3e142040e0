"""A kernel of ``tensorplug.nn.scaled_dot_product_attention`` for another package's backend."""
