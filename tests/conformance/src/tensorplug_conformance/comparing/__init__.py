"""Judgement of outputs: the bounds, the comparison, what a vendor may be forgiven."""
