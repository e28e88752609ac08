"""Detectors of torchvision: the losses of one training step, and what an untrained model finds."""

import torch
from torchvision import models, ops

OPTIONS = {"weights": None, "weights_backbone": None, "num_classes": 5}
NAMES = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": {},
    "maskrcnn_resnet50_fpn": {"min_size": 96, "max_size": 128},
    "retinanet_resnet50_fpn": {"min_size": 96, "max_size": 128},
    "fcos_resnet50_fpn": {"min_size": 96, "max_size": 128},
    "ssdlite320_mobilenet_v3_large": {},
}
torch.manual_seed(0)
images = [torch.rand(3, 90, 110), torch.rand(3, 100, 80)]
targets = []
for image in images:
    low = torch.rand(3, 2) * 30
    boxes = torch.cat([low, low + 10 + torch.rand(3, 2) * 30], 1)
    masks = torch.zeros(3, *image.shape[1:], dtype=torch.uint8)
    for mask, box in zip(masks, boxes.long(), strict=True):
        mask[box[1] : box[3], box[0] : box[2]] = 1
    targets.append({"boxes": boxes, "labels": torch.tensor([1, 2, 3]), "masks": masks})
for name, sizes in NAMES.items():
    torch.manual_seed(1)
    model = models.get_model(name, **OPTIONS, **sizes).train().double()
    torch.manual_seed(2)
    losses = model(
        [image.double() for image in images], [{**t, "boxes": t["boxes"].double()} for t in targets]
    )
    sum(losses.values()).backward()
    norm = torch.stack([p.grad.pow(2).sum() for p in model.parameters() if p.grad is not None]).sum().sqrt()
    print(
        name,
        *(f"{key} {float(value):.7g}" for key, value in sorted(losses.items())),
        f"gradient {float(norm):.6g}",
        flush=True,
    )
    with torch.no_grad():
        found = model.eval()([image.double() for image in images])
    print(
        name,
        "found",
        *(f"{len(one['scores'])} {float(one['scores'].sum()):.6g}" for one in found),
        flush=True,
    )
boxes = torch.rand(50, 4) * 20
boxes[:, 2:] += boxes[:, :2]
print(
    "losses",
    *(
        float(f(boxes[:25], boxes[25:], reduction="mean"))
        for f in (ops.generalized_box_iou_loss, ops.complete_box_iou_loss)
    ),
)
print("focal", float(ops.sigmoid_focal_loss(boxes, (boxes > 9).float(), reduction="mean")))
