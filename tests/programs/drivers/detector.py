"""DETR with its own backbone, transformer, matcher and losses: training steps on drawn images, and its boxes."""

import types

import torch
from _vision import torchvision

torchvision.__version__ = (
    "0.8"  # DETR compares the first three characters as a number, and 0.28 is none that it knows
)

from models import backbone, build_model  # noqa: E402
from util.misc import nested_tensor_from_tensor_list  # noqa: E402

backbone.is_main_process = lambda: False  # the main process downloads weights
options = types.SimpleNamespace(
    dataset_file="tiny",
    device="cpu",
    lr_backbone=1e-4,
    masks=False,
    backbone="resnet18",
    dilation=False,
    position_embedding="sine",
    hidden_dim=32,
    dropout=0.1,
    nheads=4,
    dim_feedforward=64,
    enc_layers=2,
    dec_layers=2,
    pre_norm=False,
    num_queries=10,
    aux_loss=True,
    frozen_weights=None,
    bbox_loss_coef=5,
    giou_loss_coef=2,
    mask_loss_coef=1,
    dice_loss_coef=1,
    eos_coef=0.1,
    set_cost_class=1,
    set_cost_bbox=5,
    set_cost_giou=2,
)


def boxes(count: int) -> torch.Tensor:
    """Return boxes inside of an image: centre, width and height."""
    return torch.cat([0.3 + 0.4 * torch.rand(count, 2), 0.1 + 0.3 * torch.rand(count, 2)], 1)


for name, changes in {
    "sine": {},
    "learned, norm first": {"position_embedding": "learned", "pre_norm": True},
    "masks": {"masks": True, "aux_loss": False, "hidden_dim": 256, "nheads": 8, "backbone": "resnet50"},
}.items():
    torch.manual_seed(0)
    model, criterion, processors = build_model(types.SimpleNamespace(**{**vars(options), **changes}))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    images = nested_tensor_from_tensor_list([torch.randn(3, 64, 80), torch.randn(3, 72, 64)])
    targets = [{"labels": torch.randint(0, 20, (n,)), "boxes": boxes(n)} for n in (3, 2)]
    for target, (height, width) in zip(targets, ((64, 80), (72, 64)), strict=True):
        target["masks"] = torch.rand(len(target["labels"]), height, width) > 0.5
    model.train()
    for step in range(3):
        losses = criterion(model(images), targets)
        loss = sum(losses[key] * weight for key, weight in criterion.weight_dict.items() if key in losses)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        print(f"{name} {step}: loss {loss.item():.7g} gradient {norm.item():.6g}", flush=True)
        print(name, *(f"{value.item():.6g}" for _, value in sorted(losses.items())))
    model.eval()
    with torch.no_grad():
        found = processors["bbox"](model(images), torch.tensor([[64, 80], [72, 64]]))
    print(f"{name} boxes", *(f"{value:.6g}" for value in found[0]["boxes"][:3].flatten().tolist()))
