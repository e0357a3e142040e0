"""Plugins: hook specifications, discovery by metadata, guarded loading, an engine's assembly."""
