"""A rank of MindSpeed-RL in float32: trained weights go to the engine, which generates; then the training model is asked, too.

    torchrun --nproc-per-node 2 rl_resharding.py FOLDER TENSOR PIPELINE RESULT

FOLDER has a config.json and a tokenizer. The weights are drawn anew, wider than usual, so that the probabilities differ. RESULT
receives, for each rank, the log-probabilities of the drawn tokens as the engine and as the training forward has them. The second
generation follows a change of the weights, and the third is asked with changed weights that were not moved to the engine.
"""

import json
import os
import sys
from pathlib import Path

import torch
import torch_npu  # noqa: F401
from torch_npu.contrib import transfer_to_npu  # noqa: F401

PROMPT, ANSWER, ROWS, DRAWS = 6, 6, 4, 2
FOLDER, TENSOR, PIPELINE, RESULT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
sys.argv = sys.argv[:1]
sys.path.insert(0, str(Path(os.environ["MINDSPEED_RL"]) / "cli"))
os.environ.update(VLLM_USE_V1="1", VLLM_DP_SIZE="1", VLLM_DP_MASTER_IP="127.0.0.1")

import train_grpo  # noqa: E402
from mindspeed_rl.config_cls.megatron_config import MegatronConfig  # noqa: E402
from mindspeed_rl.models.actor import Actor  # noqa: E402
from mindspeed_rl.models.rollout.vllm_adapter import vllm_parallel_state  # noqa: E402
from mindspeed_rl.models.rollout.vllm_engine import VLLMInferEngine  # noqa: E402
from mindspeed_rl.utils.compute import set_parallel_state, set_vocab_parallel  # noqa: E402
from mindspeed_rl.workers.resharding.megatron_sharding_manager import MegatronShardingManager  # noqa: E402
from transformers import AutoConfig  # noqa: E402

hf = AutoConfig.from_pretrained(FOLDER)
config = MegatronConfig(
    {
        "model": "toy", "tokenizer_type": "PretrainedFromHF", "tokenizer_name_or_path": FOLDER, "use_mcore_models": True,
        "micro_batch_size": ROWS * DRAWS, "global_batch_size": ROWS * DRAWS * 2, "seq_length": PROMPT + ANSWER, "bf16": False,
        "tensor_model_parallel_size": TENSOR, "pipeline_model_parallel_size": PIPELINE, "sequence_parallel": TENSOR > 1,
        "use_flash_attn": True, "no_masked_softmax_fusion": True, "no_gradient_accumulation_fusion": True, "seed": 7,
        "use_fused_rmsnorm": True, "use_fused_swiglu": True, "use_fused_rotary_pos_emb": True, "lr": 1e-3, "min_lr": 0.0,
        "lr_decay_style": "constant", "train_iters": 1, "init_method_std": 0.3, "attention_dropout": 0.0,
        "hidden_dropout": 0.0, "no_shared_storage": True, "distributed_backend": "nccl",
    },
    {
        "toy": {
            "use_mcore_models": True, "num_layers": hf.num_hidden_layers, "hidden_size": hf.hidden_size,
            "ffn_hidden_size": hf.intermediate_size, "num_attention_heads": hf.num_attention_heads,
            "group_query_attention": True, "num_query_groups": hf.num_key_value_heads, "rotary_base": int(hf.rope_theta),
            "max_position_embeddings": hf.max_position_embeddings, "make_vocab_size_divisible_by": 1,
            "padded_vocab_size": hf.vocab_size, "untie_embeddings_and_output_weights": True, "add_qkv_bias": True,
            "disable_bias_linear": True, "position_embedding_type": "rope", "norm_epsilon": hf.rms_norm_eps,
            "normalization": "RMSNorm", "swiglu": True, "attention_softmax_in_fp32": True,
        }
    },
)  # fmt: skip
train_grpo.initialize_megatron(config=config)
megatron = train_grpo.get_megatron_module()
parallel = megatron["parallel_state"]
set_parallel_state(parallel)
set_vocab_parallel(megatron["vocab_parallel_cross_entropy"])
model = megatron["get_model"](train_grpo.gpt_model_provider, megatron["model_type"].encoder_or_decoder)

vllm_parallel_state.get_cluster_info = lambda: dict.fromkeys(range(2), "127.0.0.1")
engine = VLLMInferEngine(
    tokenizer_name_or_path=FOLDER, train_tensor_parallel_size=TENSOR, train_pipeline_parallel_size=PIPELINE,
    train_expert_parallel_size=1, train_context_parallel_size=1, infer_tensor_parallel_size=1,
    infer_pipeline_parallel_size=1, infer_expert_parallel_size=1, dtype="float32", max_num_seqs=16,
    max_model_len=PROMPT + ANSWER,
    sampling_config={"num_completions": DRAWS, "logprobs": 1, "max_tokens": ANSWER, "top_k": -1, "temperature": 1.0},
)  # fmt: skip
engine.sampling_params.stop_token_ids, engine.model.generation_config.eos_token_id = [], None
engine.model.config.eos_token_id = None  # all answers have the same length
manager = MegatronShardingManager(
    inference_engine=engine, optimizer=None, megatron_model=model, model_config=hf, infer_tensor_parallel_size=1,
    infer_pipeline_parallel_size=1, infer_expert_parallel_size=1, parallel_state=parallel,
)  # fmt: skip
actor = Actor(
    model, None, None, stage="ray_grpo", forward_backward_func=megatron["get_forward_backward_func"](),
    micro_batch_size=ROWS * DRAWS, megatron_config=config,
)  # fmt: skip

generator = torch.Generator().manual_seed(3)
prompts = torch.randint(3, hf.vocab_size, (ROWS, PROMPT), generator=generator)


def generated():
    manager.enter_infer_mode()
    tokens, logs = engine.generate_sequences(prompts.tolist())
    manager.exit_infer_mode()
    return tokens, logs


def trained(tokens):
    """The log-probabilities of this rank's tokens. The ranks of a layout ask the model together, for one's after another's."""
    if TENSOR * PIPELINE == 1:
        return _trained(tokens)
    found = []
    for source in range(2):
        asked = tokens.clone()
        torch.distributed.broadcast(asked, source)
        found.append(_trained(asked))
    return found[torch.distributed.get_rank()]


def _trained(tokens):
    ids = torch.cat([prompts.repeat_interleave(DRAWS, 0), tokens], 1).npu()
    lengths = torch.full((len(ids), 1), PROMPT)
    batch = {
        "input_ids": ids,
        "responses": tokens.npu(),
        "prompt_length": lengths,
        "response_length": lengths,
    }
    found, _ = actor.compute_log_prob(batch)
    logs = torch.cat(found).float() if found else torch.zeros(tokens.shape).npu()
    if PIPELINE > 1:
        torch.distributed.broadcast(logs, 1)  # the last stage has them
    return logs.cpu()


def change():
    with torch.no_grad():
        for parameter in model[0].parameters():
            parameter.mul_(0.9)


rank = torch.distributed.get_rank()
pairs = []
for _ in range(2):
    tokens, logs = generated()
    pairs.append([logs.tolist(), trained(tokens).tolist(), tokens.tolist()])
    change()
pairs.append([logs.tolist(), trained(tokens).tolist(), tokens.tolist()])
Path(f"{RESULT}.{rank}").write_text(json.dumps(pairs))
