"""Windows of images as NumPy views, and what is computed over them."""
