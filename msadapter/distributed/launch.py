"""python -m torch.distributed.launch: the old name of torchrun."""
from .run import main

if __name__ == "__main__":
    main()
