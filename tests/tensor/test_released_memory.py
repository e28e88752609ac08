"""A tensor whose memory has been released still has its sizes and strides."""

import msadapter as torch


def test_what_needs_no_memory():
    x = torch.ones(3, 4)
    turned = x.t()
    x.untyped_storage().resize_(0)
    assert x.is_contiguous() and not turned.is_contiguous()
    assert x.data_ptr() == 0 and x.stride() == (4, 1)
    assert torch.empty_like(x).shape == (3, 4)
    x.untyped_storage().resize_(48)
    x.fill_(2)
    assert turned.sum() == 24 and x.data_ptr() != 0
