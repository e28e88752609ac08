"""What a training needs before it runs: exact sizes of its parameters, memory on each device, and the time of a step."""
