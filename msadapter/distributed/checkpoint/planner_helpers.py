"""Making plan items."""
from ._unsupported import refuse

_create_write_items = refuse("planner_helpers._create_write_items")
_create_read_items = refuse("planner_helpers._create_read_items")
_create_default_metadata_only_plan = refuse("planner_helpers._create_default_metadata_only_plan")
create_read_items_for_chunk_list = refuse("planner_helpers.create_read_items_for_chunk_list")
