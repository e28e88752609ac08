"""Short trainings through the libraries that people use around transformers; each gives its losses."""

from __future__ import annotations

from tests.huggingface import model_cases

CASES = ("lora", "trainer")


def run(torch, case: str, folder) -> list[float]:
    """The losses of a case, which writes its files to a folder."""
    import transformers

    model = model_cases.build(torch, transformers, "llama")
    ids = torch.randint(3, 320, (4, 16))
    return {"lora": _lora, "trainer": _trainer}[case](torch, transformers, model, ids, folder)


def _lora(torch, transformers, model, ids, folder) -> list[float]:
    import accelerate
    import peft

    options = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    model = peft.get_peft_model(model, options)
    trained = [p for p in model.parameters() if p.requires_grad]
    accelerator = accelerate.Accelerator(cpu=True)
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(trained, lr=1e-2))
    losses = []
    for _ in range(4):
        loss = model(input_ids=ids, labels=ids).loss
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    model.save_pretrained(folder)
    again = peft.PeftModel.from_pretrained(model_cases.build(torch, transformers, "llama"), folder)
    with torch.no_grad():
        losses.append(again(input_ids=ids, labels=ids).loss.item())
    return losses


def _trainer(torch, transformers, model, ids, folder) -> list[float]:
    options = transformers.TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=4,
        max_steps=4,
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        seed=1,
    )
    rows = [{"input_ids": ids[i % 4], "labels": ids[i % 4]} for i in range(16)]
    trainer = transformers.Trainer(model=model, args=options, train_dataset=rows)
    whole = trainer.train().training_loss
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry] + [whole]
