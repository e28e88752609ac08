"""What runs there are, how far they are, and whether their checkpoints are whole."""
