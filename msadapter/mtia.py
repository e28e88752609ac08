"""torch.mtia: a kind of device that does not exist here."""

from ._absent_device import absent

globals().update(absent("mtia"))
