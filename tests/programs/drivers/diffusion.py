"""Networks and schedulers of diffusers: a training step of each network, and a few steps of sampling."""

import torch
from _tell import step
from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    DDPMScheduler,
    DiTTransformer2DModel,
    UNet2DConditionModel,
    UNet2DModel,
)

torch.manual_seed(0)
unet = UNet2DModel(
    sample_size=16,
    in_channels=3,
    out_channels=3,
    block_out_channels=(16, 32),
    layers_per_block=1,
    norm_num_groups=8,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
noise, times = torch.randn(2, 3, 16, 16), torch.tensor([3, 400])
clean = torch.rand(2, 3, 16, 16)
scheduler = DDPMScheduler()
step("UNet2D", unet, unet(scheduler.add_noise(clean, noise, times), times).sample, noise)
conditioned = UNet2DConditionModel(
    sample_size=8,
    block_out_channels=(16, 32),
    layers_per_block=1,
    cross_attention_dim=24,
    norm_num_groups=8,
    attention_head_dim=8,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
)
step(
    "UNet2DCondition", conditioned, conditioned(torch.randn(2, 4, 8, 8), times, torch.randn(2, 5, 24)).sample
)
coder = AutoencoderKL(
    block_out_channels=(16, 32),
    down_block_types=("DownEncoderBlock2D",) * 2,
    up_block_types=("UpDecoderBlock2D",) * 2,
    norm_num_groups=8,
    latent_channels=4,
)
step(
    "AutoencoderKL",
    coder,
    coder(clean, sample_posterior=True, generator=torch.Generator().manual_seed(1)).sample,
    clean,
)
dit = DiTTransformer2DModel(
    num_attention_heads=2, attention_head_dim=8, in_channels=4, num_layers=2, sample_size=8, norm_num_groups=8
)
step("DiT", dit, dit(torch.randn(2, 4, 8, 8), timestep=times, class_labels=torch.tensor([1, 2])).sample)
sampler = DDIMScheduler()
sampler.set_timesteps(5)
with torch.no_grad():
    sample = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(2))
    for time in sampler.timesteps:
        sample = sampler.step(unet(sample, time).sample, time, sample).prev_sample
print("DDIM", float(sample.mean()), float(sample.std()))
