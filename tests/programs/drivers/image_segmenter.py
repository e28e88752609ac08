"""segment-anything's image encoder, prompt encoder and mask decoder at toy size: one step."""

import torch
from _tell import step
from segment_anything.modeling import ImageEncoderViT, MaskDecoder, PromptEncoder, TwoWayTransformer

torch.manual_seed(0)
encoder = ImageEncoderViT(
    img_size=128,
    patch_size=16,
    embed_dim=48,
    depth=3,
    num_heads=4,
    out_chans=32,
    use_rel_pos=True,
    window_size=3,
    global_attn_indexes=(2,),
)
found = encoder(torch.randn(1, 3, 128, 128))
step("image encoder", encoder, found)
prompts = PromptEncoder(
    embed_dim=32, image_embedding_size=(8, 8), input_image_size=(128, 128), mask_in_chans=8
)
decoder = MaskDecoder(
    transformer_dim=32,
    num_multimask_outputs=3,
    iou_head_hidden_dim=32,
    transformer=TwoWayTransformer(depth=2, embedding_dim=32, mlp_dim=64, num_heads=4),
)
points = torch.rand(1, 2, 2) * 128, torch.tensor([[1, 0]])
sparse, dense = prompts(points=points, boxes=torch.tensor([[10.0, 20, 90, 100]]), masks=None)
masks, quality = decoder(
    image_embeddings=found.detach(),
    image_pe=prompts.get_dense_pe(),
    sparse_prompt_embeddings=sparse,
    dense_prompt_embeddings=dense,
    multimask_output=True,
)
step("mask decoder", decoder, masks)
print("quality", *quality.flatten().tolist())
