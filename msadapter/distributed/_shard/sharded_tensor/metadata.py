"""Facts about a sharded tensor."""

from dataclasses import dataclass, field


@dataclass
class TensorProperties:
    """dtype and the other properties that all shards share."""

    dtype: object = None
    layout: object = None
    requires_grad: bool = False
    memory_format: object = None
    pin_memory: bool = False

    @staticmethod
    def create_from_tensor(tensor) -> "TensorProperties":
        """The properties of a tensor."""
        return TensorProperties(tensor.dtype, tensor.layout, tensor.requires_grad, None, tensor.is_pinned())


@dataclass
class ShardedTensorMetadata:
    """Size, properties and shards of a whole tensor."""

    shards_metadata: list = field(default_factory=list)
    size: object = None
    tensor_properties: TensorProperties = field(default_factory=TensorProperties)
