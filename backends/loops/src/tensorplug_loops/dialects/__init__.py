"""From statements to the text that a compiler takes."""
