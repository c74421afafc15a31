# ---- nodes -------------------------------------------------------------------


def add_node_options(parser):
    """mpirun and srun start one process on each node, and number them."""
    numbers = [os.environ[name] for name in ("OMPI_COMM_WORLD_RANK",
                                             "SLURM_NODEID")
               if name in os.environ]
    parser.add_argument("--hosts", help="of all nodes, with commas")
    parser.add_argument("--node", type=int, help="this one's place, from 0",
                        default=int(numbers[0]) if numbers else 0)


def find_hosts(arguments):
    """All nodes of the job, the first of them first."""
    if arguments.hosts is None and "SLURM_JOB_NODELIST" in os.environ:
        return subprocess.check_output(
            ["scontrol", "show", "hostnames"], text=True).split()
    return (arguments.hosts or "localhost").split(",")
