"""The part of TransformerEngine that does not depend on the framework: recipes of 8-bit training."""

from . import recipe
