"""How a call runs: registries, open devices, plans, promotion and fallback."""
