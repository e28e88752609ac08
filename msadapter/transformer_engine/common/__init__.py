"""What all frameworks share: recipes of eight-bit training."""

from . import recipe
