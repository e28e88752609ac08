"""Training with upstream's own programs: sizes that fit, the exact command, the run's folder, and what the run prints."""
