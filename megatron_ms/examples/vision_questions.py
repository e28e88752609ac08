"""Model, images and configurations of a toy task for MindSpeed-MM: what colour is a picture, and which side of it is longer?

    python megatron_ms/examples/vision_questions.py FOLDER

FOLDER receives model/ (a Qwen2.5-VL of two layers with random weights, as Hugging Face saves it), images/, questions.json, and the
files model.json, data.json and tools.json that MindSpeed-MM's pretrain_vlm.py reads. megatron_ms/examples/finetune_qwen25vl.sh runs
all steps.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

# MindSpeed-MM has the ids of Qwen's tokenizer in its code, so the toy keeps its size and its last signs.
WORDS = 151936
FIRST_SIGN = 151643
SIGNS = [
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    *("<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
]  # fmt: skip
IMAGE, VISION_START = (FIRST_SIGN + SIGNS.index(name) for name in ("<|image_pad|>", "<|vision_start|>"))
HIDDEN, INNER, LAYERS, HEADS, GROUPS = 64, 160, 2, 4, 2
SECTIONS = [2, 3, 3]  # pairs of a head's rotated dimensions for time, height and width
SEEN, SEEN_INNER, SEEN_LAYERS, SEEN_HEADS = 64, 96, 2, 4  # the vision tower
PATCH, WINDOW, WHOLE = (
    14,
    112,
    [1],
)  # pixels of a patch and of a window, and the layers that attend to all patches
THETA, EPSILON = 1000000.0, 1e-6
COLOURS = {"red": (220, 40, 40), "green": (40, 190, 60), "blue": (50, 70, 220), "white": (240, 240, 240)}
SIZES = {
    "width": (168, 112),
    "height": (84, 140),
}  # pixels, multiples of two patches, some larger than a window
QUESTION = "<image>What colour is it, and which side is longer?"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    prepare(parser.parse_args().folder)


def prepare(folder: Path) -> None:
    """Writes all files of the task; the same bytes in each call."""
    folder = folder.resolve()
    (folder / "model").mkdir(parents=True, exist_ok=True)
    _write_images(folder)
    _save_model(folder / "model")
    _save_processor(folder / "model")
    for name, content in (("model", model_of_megatron()), ("data", _data(folder))):
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


def _write_images(folder: Path) -> None:
    """Writes a picture with some noise for each colour and size, and the questions."""
    import numpy as np
    from PIL import Image

    (folder / "images").mkdir(exist_ok=True)
    noise, rows = np.random.default_rng(0), []
    for colour, value in COLOURS.items():
        for side, (width, height) in SIZES.items():
            name = f"images/{colour}-{side}.png"
            pixels = np.array(value) + noise.normal(0, 12, (height, width, 3))
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / name)
            answer = f"{colour}, {side}"
            talk = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": answer}]
            rows.append({"messages": talk, "images": [name]})
    random.Random(0).shuffle(rows)
    (folder / "questions.json").write_text(json.dumps(rows, indent=1) + "\n")


def _save_model(place: Path) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    text = {
        "vocab_size": WORDS, "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "num_key_value_heads": GROUPS, "max_position_embeddings": 512,
        "rope_theta": THETA, "rms_norm_eps": EPSILON, "tie_word_embeddings": True, "attention_dropout": 0.0,
        "rope_scaling": {"type": "mrope", "mrope_section": SECTIONS}, "bos_token_id": FIRST_SIGN,
        "eos_token_id": FIRST_SIGN + SIGNS.index("<|im_end|>"),
    }  # fmt: skip
    seen = {
        "depth": SEEN_LAYERS, "hidden_size": SEEN, "intermediate_size": SEEN_INNER, "num_heads": SEEN_HEADS,
        "out_hidden_size": HIDDEN, "patch_size": PATCH, "window_size": WINDOW, "fullatt_block_indexes": WHOLE,
    }  # fmt: skip
    configuration = transformers.Qwen2_5_VLConfig(
        text_config=text, vision_config=seen, tie_word_embeddings=True, image_token_id=IMAGE, video_token_id=IMAGE + 1,
        vision_start_token_id=VISION_START, vision_end_token_id=VISION_START + 1,
    )  # fmt: skip
    model = transformers.Qwen2_5_VLForConditionalGeneration(configuration)
    with torch.no_grad():  # as large as trained ones, so that layers with LoRA can choose among frozen words
        model.get_input_embeddings().weight.normal_(std=0.2)
    model.save_pretrained(
        place, max_shard_size="30MB"
    )  # in parts: the converter wants their index, as published models have it


def _save_processor(place: Path) -> None:
    """Writes a tokenizer with an id for each byte, and how images are divided into patches."""
    import tokenizers
    import transformers

    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    unused = [f"<unused {number}>" for number in range(len(letters), FIRST_SIGN)]
    ids = {word: number for number, word in enumerate([*letters, *unused])}
    ids |= {name: FIRST_SIGN + number for number, name in enumerate(SIGNS)}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=ids, merges=[]))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    inner.add_special_tokens([tokenizers.AddedToken(name, special=True, normalized=False) for name in SIGNS])
    tokenizer = transformers.Qwen2TokenizerFast(
        tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|endoftext|>", model_max_length=512
    )
    image = {
        "patch_size": PATCH,
        "merge_size": 2,
        "temporal_patch_size": 2,
        "min_pixels": 3136,
        "max_pixels": 262144,
    }
    processor = transformers.Qwen2_5_VLProcessor(
        image_processor=transformers.Qwen2VLImageProcessorFast(**image),
        tokenizer=tokenizer,
        video_processor=transformers.Qwen2VLVideoProcessor(**image),
        chat_template="{{ messages }}",  # MindSpeed-MM has the template in its code
    )
    processor.save_pretrained(place)


def model_of_megatron() -> dict[str, Any]:
    """The content of model.json: the same model as MindSpeed-MM describes it, with frozen vision."""
    numbers = {
        "params_dtype": "fp32",
        "bf16": True,
    }  # its rotary embedding demands the flag, and is rounded to bfloat16
    common = {
        "attention_dropout": 0.0,
        "hidden_dropout": 0.0,
        "normalization": "RMSNorm",
        "layernorm_epsilon": EPSILON,
    }
    vision = common | {
        "model_id": "qwen2vit", "num_layers": SEEN_LAYERS, "hidden_size": SEEN, "ffn_hidden_size": SEEN_INNER,
        "llm_hidden_size": SEEN, "gated_linear_unit": True, "num_attention_heads": SEEN_HEADS, "in_channels": 3,
        "patch_size": PATCH, "spatial_merge_size": 2, "temporal_patch_size": 2, "activation_func": "silu", "freeze": True,
        "use_fused_rotary_pos_emb": True, "post_layer_norm": False, "pipeline_num_layers": [SEEN_LAYERS],
        "intermediate_size": SEEN_INNER, "tokens_per_second": 2, "window_attn_size": WINDOW,
        "fullatt_block_indexes": WHOLE, "attention_mask_type": "general", "fp16": False, **numbers,
    }  # fmt: skip
    projector = {
        "model_id": "lnmlp", "num_layers": 1, "gated_linear_unit": False, "bias_activation_fusion": False,
        "add_bias_linear": True, "input_size": SEEN, "hidden_size": HIDDEN, "ffn_hidden_size": 4 * SEEN,
        "activation_func": "gelu", "freeze": True, "layernorm_epsilon": EPSILON, "normalization": "RMSNorm", **numbers,
    }  # fmt: skip
    text = common | {
        "model_id": "qwen2_5_lm", "num_layers": LAYERS, "pipeline_num_layers": [LAYERS], "hidden_size": HIDDEN,
        "ffn_hidden_size": INNER, "num_attention_heads": HEADS, "seq_length": 192, "max_position_embeddings": 512,
        "vocab_size": WORDS, "rope_theta": THETA, "untie_embeddings_and_output_weights": False,
        "disable_bias_linear": True, "init_method_std": 0.02, "position_embedding_type": "mrope",
        "activation_func": "silu", "use_fused_rotary_pos_emb": False, "attention_softmax_in_fp32": True,
        "parallel_output": True, "group_query_attention": True, "num_query_groups": GROUPS, "mrope_section": SECTIONS,
        "rope_scaling": None, "gated_linear_unit": True, "add_bias_linear": False, "add_qkv_bias": True,
        "use_remove_padding": False, **numbers,
    }  # fmt: skip
    return {
        "model_id": "qwen2_5vl", "img_context_token_id": IMAGE, "vision_start_token_id": VISION_START,
        "image_encoder": {"vision_encoder": vision, "vision_projector": projector}, "text_decoder": text,
        "text_encoder": None, "video_encoder": None, "patch": {"bridge_patch": False},
    }  # fmt: skip


def _data(folder: Path) -> dict[str, Any]:
    """The content of data.json: where the questions are, and how they are read."""
    return {
        "dataset_param": {
            "dataset_type": "huggingface",
            "preprocess_parameters": {
                "model_name_or_path": str(folder / "model"), "use_fast_tokenizer": True, "split_special_tokens": False,
                "image_max_pixels": 262144, "image_min_pixels": 0,
            },
            "basic_parameters": {
                "template": "qwen2vl", "dataset_dir": str(folder), "dataset": str(folder / "questions.json"),
                "cache_dir": str(folder / "cache"), "train_on_prompt": False, "mask_history": False,
                "preprocessing_batch_size": 1000, "preprocessing_num_workers": 1, "max_samples": None, "tool_format": None,
            },
            "attr": {
                "system": None, "images": "images", "videos": None, "messages": "messages", "role_tag": "role",
                "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant", "observation_tag": None,
                "function_tag": None, "system_tag": None,
            },
        },
        "dataloader_param": {
            "dataloader_mode": "sampler", "drop_last": True, "sampler_type": "BaseRandomBatchSampler",
            "collate_param": {"model_name": "qwen2vl", "ignore_pad_token_for_loss": True},
            "pin_memory": False, "shuffle": True,
        },
    }  # fmt: skip


if __name__ == "__main__":
    main()
