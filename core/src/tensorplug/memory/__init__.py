"""How memory is counted, and freed before the garbage collector would."""
