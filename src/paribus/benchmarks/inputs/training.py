"""Data-parallel training of a network of torchvision on synthetic images, with PyTorch's DDP.

Paribus starts this once per rank, with the Python of the node; it needs torch and torchvision. It
prints the lines of docs/benchmarks.md, "Images per second".
"""

import argparse
import ctypes
import io
import math
import os
import sys
import time

import torch
import torch.distributed as dist
import torchvision
from torch.utils.data import DataLoader, Dataset

PARAMETERS = {"resnet50": 25557032, "vgg16": 138357544}
# What launchers tell each process: Open MPI, MPICH and Intel MPI, Slurm. Slurm's come last, for in
# an allocation they are also set, to other values, where mpirun starts the ranks.
RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
SIZE = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
LOCAL = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
JPEGS = 64


def told(names, otherwise):
    """Return the number that the launcher gives by one of these variables."""
    return next((int(os.environ[name]) for name in names if name in os.environ), otherwise)


def joules():
    """Return what this rank's GPU has taken since its driver was loaded, NaN where it is not known.

    Source: nvml.h. The counter moves every 20 to 100 ms.
    """
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        uuid = torch.cuda.get_device_properties(torch.cuda.current_device()).uuid
        gpu, used = ctypes.c_void_p(), ctypes.c_ulonglong()
        failed = (
            nvml.nvmlInit_v2()
            or nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}".encode(), ctypes.byref(gpu))
            or nvml.nvmlDeviceGetTotalEnergyConsumption(gpu, ctypes.byref(used))
        )
    except (OSError, AttributeError):
        failed = True
    return math.nan if failed else used.value / 1000


class Photographs(Dataset):
    """Synthetic photographs, of 500 x 375 as ImageNet's are in the mean, and their labels.

    They lie in memory as JPEG, so that an item costs what it costs with real ones but the reading
    of the file: it is decoded, cropped, mirrored and normalised.
    """

    def __init__(self, pixels, length):
        from PIL import Image
        from torchvision import transforms

        self.length, self.open = length, Image.open
        self.change = transforms.Compose(
            [
                transforms.RandomResizedCrop(pixels),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
            ]
        )
        self.files = []
        for _ in range(JPEGS):
            coarse = transforms.ToPILImage()(torch.rand(3, 47, 63))
            file = io.BytesIO()
            coarse.resize((500, 375), Image.BILINEAR).save(file, "JPEG", quality=90)
            self.files.append(file.getvalue())

    def __len__(self):
        return self.length

    def __getitem__(self, at):
        image = self.open(io.BytesIO(self.files[at % JPEGS])).convert("RGB")
        return self.change(image), at % 1000


def batches(asked, device, steps):
    """Yield a batch for each step: the same that lies on the device, or new ones from JPEG."""
    if asked.input == "memory":
        images = torch.randn(asked.batch, 3, asked.pixels, asked.pixels, device=device)
        labels = torch.randint(1000, (asked.batch,), device=device)
        for _ in range(steps):
            yield images, labels
        return
    gpu = device.type == "cuda"
    data = Photographs(asked.pixels, steps * asked.batch)
    for images, labels in DataLoader(
        data, asked.batch, num_workers=asked.workers, pin_memory=gpu, drop_last=True
    ):
        yield images.to(device, non_blocking=gpu), labels.to(device, non_blocking=gpu)


def sums(model):
    """Return two sums over all parameters: replicas that differ anywhere have others."""
    with torch.no_grad():
        every = [p.double() for p in model.parameters()]
        return torch.stack([sum(p.sum() for p in every), sum(p.abs().sum() for p in every)])


def train(asked, model, device, ranks):
    """Return the images per second of each interval, the last loss, and the joules an image."""
    loss_of = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    source = batches(asked, device, asked.warmup + asked.intervals * asked.steps)
    loss = None

    def interval(steps):
        """Return the slowest rank's seconds for so many steps."""
        nonlocal loss
        dist.barrier()
        start = time.perf_counter()
        for _ in range(steps):
            images, labels = next(source)
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        took = torch.tensor([time.perf_counter() - start], device=device)
        dist.all_reduce(took, op=dist.ReduceOp.MAX)
        return took.item()

    interval(asked.warmup)
    images = ranks * asked.batch * asked.steps
    gpu = device.type == "cuda"
    before = joules() if gpu else math.nan
    speeds = [images / interval(asked.steps) for _ in range(asked.intervals)]
    used = torch.tensor([joules() - before if gpu else math.nan], device=device)
    dist.all_reduce(used)
    return speeds, loss.item(), used.item() / (images * asked.intervals)


def check(model, before, loss, ranks):
    """End with a sentence where the training was none: NaN, no change, or replicas that differ."""
    after = sums(model)
    others = [torch.empty_like(after) for _ in range(ranks)]
    dist.all_gather(others, after)
    if not math.isfinite(loss):
        sys.exit(f"training: the loss is {loss}")
    if torch.equal(before, after):
        sys.exit("training: no parameter has changed")
    if not all(torch.equal(after, other) for other in others):
        sys.exit("training: the ranks' parameters differ after the last step")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=list(PARAMETERS), required=True)
    parser.add_argument("--device", choices=["cpu", "gpu"], required=True)
    parser.add_argument("--input", choices=["memory", "jpeg"], required=True)
    for name in ("ranks", "batch", "pixels", "workers", "warmup", "steps", "intervals"):
        parser.add_argument("--" + name, type=int, required=True)
    asked = parser.parse_args()
    rank, ranks = told(RANK, 0), told(SIZE, 1)
    if ranks != asked.ranks:
        sys.exit(f"training: {ranks} ranks were started, not {asked.ranks}")
    if asked.device == "gpu":
        number = torch.cuda.device_count()
        if not number:
            sys.exit('training: torch sees no GPU on this node; set device = "cpu"')
        torch.cuda.set_device(told(LOCAL, rank) % number)
        device, backend = torch.device("cuda"), "nccl"
    else:
        device, backend = torch.device("cpu"), "gloo"
    torch.manual_seed(rank)
    dist.init_process_group(backend, rank=rank, world_size=ranks)
    plain = getattr(torchvision.models, asked.model)().to(device)
    if sum(p.numel() for p in plain.parameters()) != PARAMETERS[asked.model]:
        sys.exit(f"training: this torchvision has another {asked.model}")
    own = [torch.cuda.current_device()] if asked.device == "gpu" else None
    model = torch.nn.parallel.DistributedDataParallel(plain, device_ids=own)
    before = sums(model)
    speeds, loss, each = train(asked, model, device, ranks)
    check(model, before, loss, ranks)
    if rank == 0:
        said = (
            "model",
            "batch",
            "ranks",
            "device",
            "input",
            "workers",
            "pixels",
            "warmup",
            "steps",
        )
        words = " ".join(f"{name}={getattr(asked, name)}" for name in said)
        lines = [f"begin {words}"]
        for number, speed in enumerate(speeds, 1):
            lines.append(f"{number}/{len(speeds)} {speed:.6f} images/s")
        versions = f"torch={torch.__version__} torchvision={torchvision.__version__}"
        energy = f" j_per_image={each:.6g}" if each > 0 else ""
        lines.append(f"end {versions} backend={backend} loss={loss:.6f}{energy}")
        print("\n".join("paribus-throughput " + line for line in lines), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
