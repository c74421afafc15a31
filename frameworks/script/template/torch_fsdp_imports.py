try:
    from torch.distributed.fsdp import (
        CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard)
except ImportError:  # before 2.6
    try:
        from torch.distributed._composable.fsdp import (
            CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard)
    except ImportError:
        sys.exit(f"PyTorch {torch.__version__} has no fully_shard; it came "
                 f"with 2.4")
from torch.distributed.device_mesh import init_device_mesh
