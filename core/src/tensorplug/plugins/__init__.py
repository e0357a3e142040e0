"""Plugins: hook specifications, discovery by metadata, call_guarded loading, an engine's assembly."""
