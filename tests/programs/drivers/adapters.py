"""Adapters of peft on a random Llama: a training step, the merge, and saving and loading."""

import torch
from peft import (
    AdaLoraConfig,
    IA3Config,
    LNTuningConfig,
    LoHaConfig,
    LoKrConfig,
    LoraConfig,
    OFTConfig,
    PeftModel,
    PrefixTuningConfig,
    PromptTuningConfig,
    VeraConfig,
    get_peft_model,
)
from transformers import LlamaConfig, LlamaForCausalLM

LAYERS = ["q_proj", "v_proj"]
CONFIGS = {
    "lora": LoraConfig(r=4, target_modules=LAYERS, init_lora_weights=False),
    "rslora": LoraConfig(r=4, target_modules=LAYERS, use_rslora=True, init_lora_weights=False),
    "dora": LoraConfig(r=4, target_modules=LAYERS, use_dora=True, init_lora_weights=False),
    "pissa": LoraConfig(r=4, target_modules=LAYERS, init_lora_weights="pissa"),
    "loha": LoHaConfig(r=4, target_modules=LAYERS, init_weights=False),
    "lokr": LoKrConfig(r=4, target_modules=LAYERS, init_weights=False),
    "oft": OFTConfig(r=4, oft_block_size=0, target_modules=LAYERS, init_weights=False),
    "ia3": IA3Config(
        target_modules=[*LAYERS, "down_proj"], feedforward_modules=["down_proj"], init_ia3_weights=False
    ),
    "adalora": AdaLoraConfig(
        init_r=6, target_r=4, total_step=10, target_modules=LAYERS, init_lora_weights=False
    ),
    "vera": VeraConfig(r=4, target_modules=["q_proj"], init_weights=False),
    "ln_tuning": LNTuningConfig(target_modules=["input_layernorm"]),
    "prompt": PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4),
    "prefix": PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4),
}
ids = (torch.arange(24).reshape(2, 12) * 7) % 60
shape = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
}


def base():
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(**shape))


for name, config in CONFIGS.items():
    torch.manual_seed(2)
    model = get_peft_model(base(), config)
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    norm = torch.stack([p.grad.pow(2).sum() for p in model.parameters() if p.grad is not None]).sum().sqrt()
    model.save_pretrained(f"saved-{name}")
    model.eval()
    with torch.no_grad():
        logits = model(input_ids=ids).logits
        again = (
            PeftModel.from_pretrained(base(), f"saved-{name}").eval()(input_ids=ids).logits
            if name != "pissa"
            else logits
        )
    print(
        name,
        f"loss {loss.item():.7g} gradient {norm.item():.6g} loaded {float((again - logits).abs().max()) < 1e-6}",
        flush=True,
    )
    if hasattr(model, "merge_and_unload") and name not in ("prompt", "prefix"):
        with torch.no_grad():
            merged = model.merge_and_unload()(input_ids=ids).logits
        print(name, "merged", float((merged - logits).abs().max()) < 1e-4, flush=True)
