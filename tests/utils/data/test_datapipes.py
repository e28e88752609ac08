"""The class by which libraries ask whether a data set is a shuffled DataPipe."""

from __future__ import annotations

import pytest

import msadapter as torch
from msadapter.utils.data.datapipes.iter.combinatorics import ShufflerIterDataPipe


def test_no_data_set_is_a_shuffled_datapipe_and_none_can_be_made():
    data = torch.utils.data.TensorDataset(torch.arange(3))
    assert not isinstance(data, ShufflerIterDataPipe)
    assert issubclass(ShufflerIterDataPipe, torch.utils.data.IterableDataset)
    with pytest.raises(NotImplementedError, match="ShufflerIterDataPipe"):
        ShufflerIterDataPipe(data)
