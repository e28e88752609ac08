"""The configuration: a YAML file with a recipe below it and KEY=VALUE above it, checked by sections.

document = config.load(path, overrides)
wishes = document.section("data", Data)      # a Section, with checked values
raise document.error("dataset.path", "...")     # a UserError that names file, line and key
"""

from .document import Document, load
from .section import Place, Section, key
