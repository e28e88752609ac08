"""python -m torch.distributed.launch: the old form of torchrun, which gives a script --local-rank unless --use-env."""

from .agent import LOCAL_RANK_ARGUMENT
from .run import get_args_parser, run


def main(args=None) -> None:
    """The entry point."""
    parser = get_args_parser()
    parser.add_argument(
        "--use-env", "--use_env", action="store_true", help="LOCAL_RANK in the environment is enough"
    )
    parsed = parser.parse_args(args)
    if not parsed.use_env:
        parsed.training_script_args.insert(0, LOCAL_RANK_ARGUMENT)
    run(parsed)


if __name__ == "__main__":
    main()
