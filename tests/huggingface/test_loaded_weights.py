"""`from_pretrained` keeps what it has loaded, also where a model's `_init_weights` calls `reset_parameters`.

transformers guards loaded weights by replacing the functions of torch.nn.init in the modules that it finds in sys.modules.
"""

from __future__ import annotations

import msadapter as torch


def test_wav2vec2_keeps_its_projections(transformers, tmp_path):
    torch.manual_seed(0)
    model = transformers.Wav2Vec2ForPreTraining(
        transformers.Wav2Vec2Config(
            vocab_size=12,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=24,
            conv_dim=(8, 8),
            conv_stride=(2, 2),
            conv_kernel=(4, 3),
            num_feat_extract_layers=2,
            num_conv_pos_embeddings=4,
            num_conv_pos_embedding_groups=2,
            feat_extract_norm="layer",
            num_codevectors_per_group=4,
            codevector_dim=8,
            proj_codevector_dim=8,
        )
    )
    model.save_pretrained(tmp_path)
    loaded = transformers.Wav2Vec2ForPreTraining.from_pretrained(tmp_path).state_dict()
    for name, saved in model.state_dict().items():
        assert torch.equal(loaded[name], saved), name
