"""Programs that move windows over images: convolutions, and what pooling shares with them."""

from __future__ import annotations
