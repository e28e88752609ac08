"""Architectures of vit-pytorch: one training step each."""

import torch
from _tell import step
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.cait import CaiT
from vit_pytorch.cct import CCT
from vit_pytorch.deepvit import DeepViT
from vit_pytorch.levit import LeViT
from vit_pytorch.max_vit import MaxViT
from vit_pytorch.nest import NesT
from vit_pytorch.pit import PiT
from vit_pytorch.t2t import T2TViT

torch.manual_seed(0)
images = torch.randn(2, 3, 64, 64)
common = {"image_size": 64, "patch_size": 16, "num_classes": 10, "dim": 32, "heads": 4, "mlp_dim": 64}
MODELS = {
    "ViT": lambda: ViT(**common, depth=2),
    "SimpleViT": lambda: SimpleViT(**common, depth=2),
    "DeepViT": lambda: DeepViT(**common, depth=2),
    "CaiT": lambda: CaiT(**common, depth=2, cls_depth=1),
    "PiT": lambda: PiT(**common, depth=(1, 1, 1)),
    "T2TViT": lambda: T2TViT(
        dim=32, image_size=64, depth=2, heads=4, mlp_dim=64, num_classes=10, t2t_layers=((7, 4), (3, 2))
    ),
    "CCT": lambda: CCT(
        img_size=64,
        embedding_dim=32,
        n_conv_layers=2,
        kernel_size=7,
        stride=2,
        padding=3,
        num_layers=2,
        num_heads=4,
        mlp_ratio=2.0,
        num_classes=10,
    ),
    "LeViT": lambda: LeViT(
        image_size=64, num_classes=10, stages=2, dim=(32, 48), depth=2, heads=(2, 4), mlp_mult=2
    ),
    "NesT": lambda: NesT(
        image_size=64,
        patch_size=4,
        dim=24,
        heads=2,
        num_hierarchies=3,
        block_repeats=(1, 1, 1),
        num_classes=10,
    ),
    "MaxViT": lambda: MaxViT(
        num_classes=10, dim_conv_stem=16, dim=16, dim_head=8, depth=(1, 1), window_size=4, dropout=0.0
    ),
}
for name, make in MODELS.items():
    torch.manual_seed(1)
    model = make()
    step(name, model, model(images))
