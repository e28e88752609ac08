"""The suite nn_names: the public names of torch.nn that are claimed here."""

# Names of torch.nn that came after the surface we claim (2.7), or are not part of it.
NOT_CLAIMED = {
    "LinearCrossEntropyLoss",
    "LinearCrossEntropyOptions",
    "intrinsic",
    "qat",
    "quantizable",
    "quantized",
}
NOT_CLAIMED_FUNCTIONS = {"grouped_mm", "linear_cross_entropy", "scaled_grouped_mm", "scaled_mm"}


def public(module, unwanted=()):
    return sorted(n for n in dir(module) if not n.startswith("_") and n not in unwanted)


def functions(torch):
    """Public functions of torch.nn.functional that work on tensors."""
    f = torch.nn.functional
    helpers = {
        "assert_int_or_pair",
        "boolean_dispatch",
        "handle_torch_function",
        "has_torch_function",
        "has_torch_function_unary",
        "has_torch_function_variadic",
        "Callable",
        "Optional",
        "Tensor",
        "DType",
        "ScalingType",
        "SwizzleType",
        "BroadcastingList1",
        "BroadcastingList2",
        "BroadcastingList3",
    }
    return [n for n in public(f, helpers | NOT_CLAIMED_FUNCTIONS) if callable(getattr(f, n))]


def golden_answers(torch) -> dict:
    inits = [n for n in public(torch.nn.init) if n.islower() and n not in ("math", "torch", "warnings")]
    return {
        "nn": public(torch.nn, NOT_CLAIMED),
        "nn.functional": functions(torch),
        "nn.init": inits,
        "nn.utils": public(torch.nn.utils),
    }
