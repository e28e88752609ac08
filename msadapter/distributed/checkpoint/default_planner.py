"""The planners that torch.distributed.checkpoint uses by itself."""
from ._unsupported import refuse, refusing_class


class DefaultSavePlanner(refusing_class("DefaultSavePlanner")):
    """Plans a save."""


class DefaultLoadPlanner(refusing_class("DefaultLoadPlanner")):
    """Plans a load."""


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Plans a load of everything in the file."""


create_default_local_save_plan = refuse("default_planner.create_default_local_save_plan")
create_default_global_save_plan = refuse("default_planner.create_default_global_save_plan")
create_default_local_load_plan = refuse("default_planner.create_default_local_load_plan")
create_default_global_load_plan = refuse("default_planner.create_default_global_load_plan")
