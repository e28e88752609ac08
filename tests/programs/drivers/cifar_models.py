"""A step of the networks of pytorch-cifar, without ShuffleNetG2, whose sizes are not integers since Python 3."""

import _tell
import models
import torch

NETWORKS = {
    "DenseNet121": models.DenseNet121,
    "DPN26": models.DPN26,
    "EfficientNetB0": models.EfficientNetB0,
    "GoogLeNet": models.GoogLeNet,
    "LeNet": models.LeNet,
    "MobileNet": models.MobileNet,
    "MobileNetV2": models.MobileNetV2,
    "PNASNetA": models.PNASNetA,
    "PreActResNet18": models.PreActResNet18,
    "RegNetX_200MF": models.RegNetX_200MF,
    "ResNet18": models.ResNet18,
    "ResNeXt29": models.ResNeXt29_2x64d,
    "SENet18": models.SENet18,
    "ShuffleNetV2": lambda: models.ShuffleNetV2(0.5),
    "SimpleDLA": models.SimpleDLA,
    "VGG11": lambda: models.VGG("VGG11"),
}

# PyTorch's gradient of it in float32 differs by 1.1e-4 from that in float64, and msadapter's by 3e-6.
IN_FLOAT64 = ("SimpleDLA",)

for name, make in NETWORKS.items():
    torch.manual_seed(0)
    dtype = torch.float64 if name in IN_FLOAT64 else torch.float32
    model = make().to(dtype)
    _tell.step(name, model, model(torch.randn(4, 3, 32, 32).to(dtype)))
