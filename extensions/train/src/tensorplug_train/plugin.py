"""The extension ``train``: it brings ``tp.train``, and registers nothing."""
