"""denoising-diffusion-pytorch: its U-Nets and diffusions, each trained for some steps, and samples of the last one."""

import random

import _vision  # noqa: F401 (the package imports torchvision)
import torch
from denoising_diffusion_pytorch import (
    ContinuousTimeGaussianDiffusion,
    ElucidatedDiffusion,
    GaussianDiffusion,
    GaussianDiffusion1D,
    KarrasUnet,
    LearnedGaussianDiffusion,
    Unet,
    Unet1D,
)


def train(name, model, images) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(3):
        random.seed(step)
        loss = model(images)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.stack([p.grad.double().norm() for p in model.parameters() if p.grad is not None]).norm()
        optimizer.step()
        print(f"{name} {step}: loss {loss.item():.7g} gradient {norm.item():.6g}", flush=True)


def unet(**options):
    return Unet(dim=8, dim_mults=(1, 2), attn_heads=2, attn_dim_head=8, **options)


MODELS = {
    "noise": lambda: GaussianDiffusion(unet(), image_size=16, timesteps=20),
    "v, offset noise": lambda: GaussianDiffusion(
        unet(self_condition=True), image_size=16, timesteps=20, objective="pred_v", offset_noise_strength=0.1
    ),
    "start, smallest distance": lambda: GaussianDiffusion(
        unet(),
        image_size=16,
        timesteps=20,
        objective="pred_x0",
        beta_schedule="cosine",
        min_snr_loss_weight=True,
    ),
    "learned variance": lambda: LearnedGaussianDiffusion(
        unet(learned_variance=True), image_size=16, timesteps=20
    ),
    "continuous": lambda: ContinuousTimeGaussianDiffusion(
        unet(learned_sinusoidal_cond=True), image_size=16, num_sample_steps=4
    ),
    "elucidated": lambda: ElucidatedDiffusion(
        unet(learned_sinusoidal_cond=True), image_size=16, num_sample_steps=4
    ),
    "Karras": lambda: GaussianDiffusion(
        KarrasUnet(
            image_size=16, channels=3, dim=8, dim_max=16, num_downsamples=1, attn_res=(8,), attn_dim_head=8
        ),
        image_size=16,
        timesteps=20,
    ),
}
for name, make in MODELS.items():
    torch.manual_seed(0)
    model = make()
    train(name, model, torch.rand(4, 3, 16, 16))
torch.manual_seed(1)
line = GaussianDiffusion1D(Unet1D(dim=8, dim_mults=(1, 2), channels=4), seq_length=32, timesteps=20)
train("sequence", line, torch.rand(4, 4, 32))
for name, timesteps in (("all steps", 20), ("DDIM", 5)):
    torch.manual_seed(2)
    model = GaussianDiffusion(unet(), image_size=8, timesteps=20, sampling_timesteps=timesteps)
    drawn = model.sample(batch_size=1)
    print(f"{name}:", *(f"{value:.6g}" for value in drawn[0, :, 3].flatten().tolist()))
