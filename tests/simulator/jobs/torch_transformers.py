"""Models of transformers on the simulated NPU: run by test_torch.py.

python torch_transformers.py FILE FAMILY [FAMILY ...]: writes the answers of each family as JSON to FILE.
"""

import json
import sys
from pathlib import Path

import torch
import transformers

sys.path.insert(0, str(Path(__file__).parents[2] / "huggingface"))
import model_cases

answers = {family: model_cases.run(torch, transformers, family, "npu") for family in sys.argv[2:]}
Path(sys.argv[1]).write_text(json.dumps(answers))
