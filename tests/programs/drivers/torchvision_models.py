"""Classifiers and segmenters of torchvision: one training step each."""

import torch
from _tell import step
from torchvision import models

CLASSIFIERS = (
    "alexnet",
    "vgg11",
    "resnet18",
    "squeezenet1_1",
    "densenet121",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "efficientnet_b0",
    "efficientnet_v2_s",
    "regnet_y_400mf",
    "shufflenet_v2_x0_5",
    "mnasnet0_5",
    "googlenet",
    "convnext_tiny",
    "swin_t",
    "swin_v2_t",
    "vit_b_32",
    "maxvit_t",
)
SEGMENTERS = ("lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large", "fcn_resnet50")
for name in CLASSIFIERS:
    torch.manual_seed(1)
    options = {"aux_logits": False, "init_weights": True} if name == "googlenet" else {}
    model = models.get_model(name, num_classes=10, **options).train()
    size = 224 if name in ("vit_b_32", "maxvit_t") else 96
    step(name, model, model(torch.randn(2, 3, size, size)))
for name in SEGMENTERS:
    torch.manual_seed(1)
    model = models.get_model(name, num_classes=5, weights_backbone=None).train()
    step(name, model, model(torch.randn(2, 3, 96, 96))["out"])
