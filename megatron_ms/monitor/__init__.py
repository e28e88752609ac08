"""Observes a training from inside its ranks, over unmodified upstreams."""
