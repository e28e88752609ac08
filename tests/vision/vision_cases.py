"""The operators of torchvision's C++ library: options, layouts, gradients, refusals.

Recorded with torchvision 0.28. Its wheel for CUDA serves too, if the dynamic linker finds stand-ins for CUDA's libraries.
"""

from tests.golden.answers import expressions

SETUP = """
from tests.vision.operators import operators
ops = operators(torch)
def wave(*shape, dtype=torch.float64, step=0.7, shift=0.3):
    n = 1
    for size in shape: n *= size
    at = torch.arange(n, dtype=torch.float64)
    return ((at * step + shift).sin() * 3 + (at * at * 0.013).cos()).reshape(shape).to(dtype)
def boxes(n, size, dtype=torch.float64, shift=0.0):
    low = (wave(n, 2, step=1.3, shift=shift) / 4 + 0.3) * size
    extent = (wave(n, 2, step=2.1, shift=shift + 1) / 4).abs() * size
    return torch.cat([low, low + extent], 1).to(dtype)
def rois(n, size, images, dtype=torch.float64):
    return torch.cat([(torch.arange(n) % images).to(dtype)[:, None], boxes(n, size, dtype)], 1)
def grads(function, *inputs):
    leaves = [x.detach().requires_grad_() for x in inputs]
    out = function(*leaves)
    out = out[0] if isinstance(out, tuple) else out
    return torch.autograd.grad(out, leaves, wave(*out.shape, dtype=out.dtype, step=0.37))
x = wave(2, 8, 11, 9)
r = rois(6, 14, 2)
def deform(dtype=torch.float64, groups=1, offset_groups=1, kernel=(3, 3), stride=(1, 1), pad=(1, 1), dilation=(1, 1), use_mask=True,
           only=None, size=(7, 8)):
    oh, ow = ((s + 2 * p - (d * (k - 1) + 1)) // t + 1 for s, p, d, k, t in zip(size, pad, dilation, kernel, stride))
    points = kernel[0] * kernel[1]
    inputs = [wave(2, 4, *size, dtype=dtype), wave(6, 4 // groups, *kernel, dtype=dtype, step=0.9) / 4,
              wave(2, 2 * offset_groups * points, oh, ow, dtype=dtype, step=1.9) / 1.5,
              wave(2, offset_groups * points, oh, ow, dtype=dtype, step=0.31), wave(6, dtype=dtype)]
    call = lambda *a: ops.deform_conv2d(*a, *stride, *pad, *dilation, groups, offset_groups, use_mask)
    if only is None:
        return call(*inputs)
    return grads(call, *inputs)[only]
rotated = torch.tensor([[5, 5, 4, 2, 0], [5, 5, 4, 2, 90], [6, 5, 4, 2, 30], [5, 5, 4, 2, 180], [20, 20, 3, 3, 10], [5, 5, 0, 2, 0],
                        [5.5, 4.5, 6, 6, 45], [5, 5, 4, 2, -720]])
"""

_nms = [
    *(
        f"ops.nms(boxes({n}, 20), wave({n}, step=0.11), {limit})"
        for n in (0, 1, 6, 60)
        for limit in (0.0, 0.3, 0.7)
    ),
    "ops.nms(boxes(40, 20), (wave(40) > 0).double(), 0.5)",  # equal scores keep their order
    "ops.nms(boxes(1300, 60), wave(1300, step=0.11), 0.4)",
    "ops.nms(boxes(30, 20, torch.float32), wave(30, dtype=torch.float32), 0.5)",
    "ops.nms(boxes(30, 20).t().contiguous().t(), wave(60)[::2], 0.5)",
    "ops.nms(torch.zeros(5, 4), torch.arange(5.0), 0.5)",
    "ops.nms(torch.tensor([[0, 0, 1, 1], [0, 0, 1, float('nan')], [0, 0, 1, 1.0]]), torch.tensor([1, 2, 3.0]), 0.5)",
    "ops.nms(torch.zeros(3, 4), torch.zeros(2), 0.1)",
    "ops.nms(torch.zeros(3, 5), torch.zeros(3), 0.1)",
    "ops.nms(torch.zeros(3), torch.zeros(3), 0.1)",
    "ops.nms(torch.zeros(3, 4), torch.zeros(3, 1), 0.1)",
    "ops.nms(torch.zeros(3, 4), torch.zeros(3).double(), 0.1)",
    "ops.nms(torch.zeros(3, 4).int(), torch.zeros(3).int(), 0.1)",
    "ops.box_iou_rotated(rotated, rotated)",
    "ops.box_iou_rotated(rotated[:3], rotated[4:].double().float())",
    "ops.box_iou_rotated(rotated[:0], rotated)",
]
_calls = {
    "roi_align": [
        "0.5, 3, 2, -1, False",
        "0.5, 3, 2, -1, True",
        "1.0, 2, 4, 2, True",
        "0.7, 2, 2, 0, True",
        "3.0, 2, 2, 1, False",
    ],
    "roi_pool": ["0.5, 3, 2", "1.0, 2, 4", "0.25, 1, 1", "3.0, 2, 2"],
    "ps_roi_align": ["0.5, 2, 2, -1", "1.0, 2, 4, 3", "0.7, 4, 1, 2"],
    "ps_roi_pool": ["0.5, 2, 2", "1.0, 2, 4", "0.7, 4, 1"],
}
_regions = [
    *(f"ops.{name}(x, r, {options})" for name, calls in _calls.items() for options in calls),
    *(
        f"grads(lambda x: ops.{name}(x, r, {options}), x)"
        for name, calls in _calls.items()
        for options in calls
    ),
    *(f"ops.{name}(x.float(), r.float(), {calls[1]})" for name, calls in _calls.items()),
    *(f"ops.{name}(x, r[:0], {calls[0]})" for name, calls in _calls.items()),
    *(f"grads(lambda x: ops.{name}(x, r[:0], {calls[0]}), x)" for name, calls in _calls.items()),
    *(
        f"grads(lambda x: ops.{name}(x, torch.cat([r[:, :1], r[:, 1:] + 400], 1), {calls[0]}), x)"
        for name, calls in _calls.items()
        if name != "roi_align"
    ),
    "grads(lambda x: ops.roi_align(x, torch.cat([r[:, :3], r[:, 1:3]], 1), 1.0, 2, 2, -1, True), x)",  # regions of no size
    *(f"ops.{name}(x.transpose(2, 3), r.t().contiguous().t(), {calls[1]})" for name, calls in _calls.items()),
    *(f"ops.{name}(wave(2, 8, 11, 18)[..., ::2], r, {calls[1]})" for name, calls in _calls.items()),
    # torchvision's roi_pool does not check this, and reads past the end of the regions
    *(f"ops.{name}(x, r[:, :4], {calls[0]})" for name, calls in _calls.items() if name != "roi_pool"),
    *(f"ops.{name}(x, r.float(), {calls[0]})" for name, calls in _calls.items()),
    "ops.roi_pool(x.half(), r.half(), 0.5, 3, 2)[1]",
    "ops.roi_pool(torch.full((1, 1, 4, 4), float('nan')), torch.tensor([[0, 0, 0, 3, 3.0]]), 1.0, 2, 2)",
    "ops.roi_align(x, torch.tensor([[1, 3, 3, 3, 3], [0, 5, 5, 2, 2.0]]).double(), 1.0, 2, 2, -1, True)",
    "ops.ps_roi_pool(x, r, 0.5, 3, 3)",
    "ops.ps_roi_align(x, r, 0.5, 3, 3, 2)",
]
_options = [
    "",
    "use_mask=False",
    "groups=2",
    "offset_groups=2",
    "groups=2, offset_groups=4, use_mask=False",
    "stride=(2, 1), pad=(0, 2)",
    "dilation=(1, 2), kernel=(2, 3)",
    "kernel=(1, 1), pad=(0, 0)",
]
_deformable = [
    *(f"deform({options})" for options in _options),
    *(
        f"deform({f'{options}, ' if options else ''}only={i})"
        for options in _options[:6]
        for i in (0, 1, 2, 4)
    ),
    *(f"deform({options}, only=3)" for options in ("groups=2", "offset_groups=2")),
    "deform(torch.float32)",
    "deform(torch.float32, only=2)",
]
CASES = expressions(SETUP, [*_nms, *_regions, *_deformable])
