"""Learns preferences with trl's DPOTrainer. The command `train` starts it when run.backend is hf and run.task is dpo.

Its flags are those of trl's DPOConfig and of hf_program.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hf_program as shared  # Python finds it in the folder of this file


def main() -> None:
    import datasets
    import trl

    class OfPairs(trl.DPOTrainer):
        """A trainer whose rows have ids already, made with the template of instruction data."""

        def _prepare_dataset(self, dataset: Any, *_: Any, **__: Any) -> Any:
            return dataset

    own, options = shared.parsed(trl.DPOConfig)
    tokenizer = shared.tokenizer_of(own)
    if tokenizer is None:
        raise SystemExit(f"{own.tokenizer_folder or own.model_folder}: has no tokenizer, which dpo needs")
    if not shared.has_weights(Path(own.model_folder)):
        raise SystemExit(f"{own.model_folder}: has no weights, and dpo needs a model that has learned")
    names = {f"{name}_input_ids": f"{name}_ids" for name in ("prompt", "chosen", "rejected")}
    rows = [{names[name]: ids for name, ids in row.items()} for row in shared.columns(own.rows, *names)]
    model = shared.loaded(own, options)
    shared.finish(
        OfPairs(
            model=shared.adapted(model, own) if own.lora_load else model,
            args=options,
            train_dataset=datasets.Dataset.from_list(shared.some(rows, own)),
            processing_class=tokenizer,
            peft_config=shared.lora(own),
            callbacks=[shared.recorder()],
        ),
        own,
    )


if __name__ == "__main__":
    main()
