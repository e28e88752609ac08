"""The order of graph nodes."""

import msadapter as torch


def test_sequence_numbers_order_the_backward_pass():
    order = []
    a = torch.ones(2, requires_grad=True)
    terms = {"x": a * 1, "y": a * 2, "z": a * 3}
    for name, term in terms.items():
        term.grad_fn.register_prehook(lambda g, name=name: order.append(name))
    terms["x"].grad_fn._set_sequence_nr(2**63 - 1)
    (terms["x"] + terms["y"] + terms["z"]).sum().backward()
    assert order == ["x", "z", "y"] and terms["x"].grad_fn._sequence_nr() == 2**63 - 1
