"""kornia: transforms, colours, filters, features, losses and random augmentations, each with the gradient of its image."""

import kornia
import kornia.augmentation as K
import torch

torch.manual_seed(0)
image = torch.rand(2, 3, 24, 32)
other = torch.rand(2, 3, 24, 32)
points = torch.tensor([[[2.0, 3.0], [28.0, 2.0], [30.0, 20.0], [3.0, 21.0]]]).repeat(2, 1, 1)
corners = torch.tensor([[[0.0, 0.0], [31.0, 0.0], [31.0, 23.0], [0.0, 23.0]]]).repeat(2, 1, 1)
matrix = kornia.geometry.get_perspective_transform(points, corners)
OPERATORS = {
    "perspective": lambda x: kornia.geometry.warp_perspective(x, matrix, (24, 32)),
    "rotate": lambda x: kornia.geometry.rotate(x, torch.tensor([30.0, -45.0])),
    "shear": lambda x: kornia.geometry.shear(x, torch.tensor([[0.1, 0.2], [0.0, -0.3]])),
    "elastic": lambda x: kornia.geometry.transform.elastic_transform2d(
        x, other[:, :2] * 2 - 1, (5, 5), (2.0, 2.0)
    ),
    "pyramid": lambda x: kornia.geometry.transform.pyrdown(x),
    "hsv": lambda x: kornia.color.hsv_to_rgb(kornia.color.rgb_to_hsv(x)),
    "lab": kornia.color.rgb_to_lab,
    "luv": kornia.color.rgb_to_luv,
    "ycbcr": kornia.color.rgb_to_ycbcr,
    "sepia": kornia.color.sepia,
    "gaussian": lambda x: kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
    "median": lambda x: kornia.filters.median_blur(x, (3, 3)),
    "bilateral": lambda x: kornia.filters.bilateral_blur(x, (5, 5), 0.1, (1.5, 1.5)),
    "sobel": kornia.filters.sobel,
    "canny": lambda x: kornia.filters.canny(x)[0],
    "laplacian": lambda x: kornia.filters.laplacian(x, 3),
    "unsharp": lambda x: kornia.filters.unsharp_mask(x, (5, 5), (1.5, 1.5)),
    "equalize": lambda x: kornia.enhance.equalize_clahe(x, grid_size=(2, 2)),
    "jpeg": lambda x: kornia.enhance.jpeg_codec_differentiable(x[..., :16, :32], torch.tensor([50.0, 80.0])),
    "zca": lambda x: kornia.enhance.zca_whiten(x.flatten(1).T[:40]),
    "dilate": lambda x: kornia.morphology.dilation(x, torch.ones(3, 3)),
    "gradient": lambda x: kornia.morphology.gradient(x, torch.ones(3, 3)),
    "harris": lambda x: kornia.feature.harris_response(x),
    "hessian": lambda x: kornia.feature.hessian_response(x),
    "SIFT": lambda x: kornia.feature.SIFTDescriptor(16)(x[:, :1, :16, :16]),
    "ssim": lambda x: kornia.losses.ssim_loss(x, other, 5),
    "ms-ssim": lambda x: kornia.losses.MS_SSIMLoss(sigmas=[0.5, 1.0])(x, other),
    "psnr": lambda x: kornia.losses.psnr_loss(x, other, 1.0),
    "variation": kornia.losses.total_variation,
    "focal": lambda x: kornia.losses.focal_loss(x, (other[:, 0] * 3).long(), 0.5, 2.0, "mean"),
    "dice": lambda x: kornia.losses.dice_loss(x, (other[:, 0] * 3).long()),
    "lovasz": lambda x: kornia.losses.lovasz_softmax_loss(x, (other[:, 0] * 3).long()),
    "distance": lambda x: kornia.contrib.distance_transform((x > 0.8).to(x) + 0 * x),
}
AUGMENTATIONS = {
    "affine": lambda: K.RandomAffine(30.0, (0.1, 0.1), (0.8, 1.2), 10.0, p=1.0),
    "perspective": lambda: K.RandomPerspective(0.5, p=1.0),
    "crop": lambda: K.RandomResizedCrop((16, 16), p=1.0),
    "jitter": lambda: K.ColorJitter(0.2, 0.2, 0.2, 0.1, p=1.0),
    "erase": lambda: K.RandomErasing(p=1.0),
    "thin plates": lambda: K.RandomThinPlateSpline(p=1.0),
    "motion": lambda: K.RandomMotionBlur(5, 35.0, 0.5, p=1.0),
    "noise": lambda: K.RandomGaussianNoise(p=1.0),
    "plasma": lambda: K.RandomPlasmaShadow(p=1.0),
    "mix": lambda: K.RandomCutMixV2(p=1.0),
    "sequence": lambda: K.AugmentationSequential(
        K.RandomHorizontalFlip(), K.RandomRotation(20.0), K.RandomSolarize()
    ),
}


def tell(name, function, seed=1) -> None:
    """Print the sum and the norm of the result, and the norm of the gradient if there is one."""
    torch.manual_seed(seed)
    given = image.clone().requires_grad_()
    result = function(given)
    numbers = [result.double().sum().item(), result.double().norm().item()]
    if result.requires_grad:
        result.square().sum().backward()
        numbers.append(given.grad.double().norm().item())
    print(f"{name}:", *(f"{number:.6g}" for number in numbers), flush=True)


for name, function in OPERATORS.items():
    tell(name, function)
for name, make in AUGMENTATIONS.items():
    for seed in (1, 2):
        torch.manual_seed(seed)
        augmentation = make()
        tell(f"random {name}", augmentation, seed)
