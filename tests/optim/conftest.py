"""Makes the cases of this folder importable by name, here and from tests/golden."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
