"""PyTorch's side of the comparison, one measurement per process: prints one JSON object.

op:    F.linear forward, and dX + dW + db backward, of [rows, in] by [out, in].
model: training step or inference of a ViT of the shape of gyre's vit (pre-norm, class token, learnt
       positions, GELU by the error function).
"""

import argparse
import ctypes
import json

import openblas_peer
from timing import row, time_rounds


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    modes = parser.add_subparsers(dest="mode", required=True)
    op = modes.add_parser("op")
    op.add_argument("--widths", default="64,128,256,384,512,1024,2048,4096")
    op.add_argument("--rows", type=int, default=4096)
    model = modes.add_parser("model")
    model.add_argument("--pass", dest="kind", choices=["train", "infer"], default="train")
    model.add_argument("--image-size", type=int, default=224)
    model.add_argument("--patch-size", type=int, default=16)
    model.add_argument("--channels", type=int, default=3)
    model.add_argument("--width", type=int, default=384)
    model.add_argument("--depth", type=int, default=12)
    model.add_argument("--heads", type=int, default=3)
    model.add_argument("--classes", type=int, default=100)
    model.add_argument("--batch", type=int, default=16)
    for mode in (op, model):
        mode.add_argument("--threads", type=int, default=2)
        mode.add_argument("--rounds", type=int, default=9)
        mode.add_argument("--seconds", type=float, default=0.1)
    return parser.parse_args()


def measure_op(torch, options):
    results = []
    for width in (int(word) for word in options.widths.split(",")):
        x = torch.randn(options.rows, width, requires_grad=True)
        layer = torch.nn.Linear(width, width)
        dy = torch.randn(options.rows, width)

        def forward():
            with torch.no_grad():
                layer(x)

        y = layer(x)
        inputs = (x, layer.weight, layer.bias)

        def backward():
            torch.autograd.grad(y, inputs, dy, retain_graph=True)

        for direction, call in (("forward", forward), ("backward", backward)):
            times = time_rounds(call, options.rounds, options.seconds)
            results.append(row(times, op="linear", width=width, rows=options.rows, direction=direction))
    return results


def make_vit(torch, options):
    nn, functional = torch.nn, torch.nn.functional

    def plain_attention(q, k, v):
        return (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1) @ v

    attention = getattr(functional, "scaled_dot_product_attention", plain_attention)  # since 2.0

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch, tokens, width = x.shape
            qkv = self.qkv(self.norm1(x)).view(batch, tokens, 3, self.heads, width // self.heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            y = attention(q, k, v)
            x = x + self.proj(y.transpose(1, 2).reshape(batch, tokens, width))
            return x + self.fc2(functional.gelu(self.fc1(self.norm2(x))))

    class Vit(nn.Module):
        def __init__(self):
            super().__init__()
            width, patch = options.width, options.patch_size
            tokens = (options.image_size // patch) ** 2 + 1
            self.patch_embed = nn.Conv2d(options.channels, width, patch, patch)
            self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
            self.pos_embed = nn.Parameter(0.02 * torch.randn(1, tokens, width))
            self.blocks = nn.Sequential(*(Block(width, options.heads) for _ in range(options.depth)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, options.classes)

        def forward(self, images):
            x = self.patch_embed(images).flatten(2).transpose(1, 2)
            x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
            return self.head(self.norm(self.blocks(x))[:, 0])

    return Vit()


def measure_model(torch, options):
    model = make_vit(torch, options)
    shape = (options.batch, options.channels, options.image_size, options.image_size)
    images, labels = torch.randn(shape), torch.randint(options.classes, (options.batch,))
    settings = {"lr": 1e-6, "weight_decay": 0.05}
    try:  # one kernel for all parameters, on the CPU since 2.3
        optimizer = torch.optim.AdamW(model.parameters(), fused=True, **settings)
    except (TypeError, RuntimeError):
        optimizer = torch.optim.AdamW(model.parameters(), **settings)

    def train():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels, label_smoothing=0.1)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    def infer():
        with torch.inference_mode():
            return model(images)

    if options.kind == "infer":
        model.eval()
    times = time_rounds(train if options.kind == "train" else infer, options.rounds, options.seconds)
    parameters = sum(p.numel() for p in model.parameters())
    result = row(times, op="vit", kind=options.kind, batch=options.batch, parameters=parameters)
    return [{**result, "images_per_s": 1e3 * options.batch / result["ms_median"]}]


def blas_of(torch):
    """What multiplies matrices: MKL where it is built in, else the library that the system has loaded."""
    if torch.backends.mkl.is_available():
        return "MKL"
    with open("/proc/self/maps", encoding="utf-8") as file:
        paths = {line.split()[-1] for line in file if "blas" in line}
    for path in sorted(paths):
        library = ctypes.CDLL(path)
        if hasattr(library, "openblas_get_config"):
            return openblas_peer.name_of(library)
    return "another BLAS"


def main():
    options = parse()
    try:
        import torch
    except ImportError as error:
        raise SystemExit(f"torch_peer: PyTorch cannot be imported ({error}); see bench/peers/README.md")
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    measure = measure_op if options.mode == "op" else measure_model
    print(json.dumps({
        "library": f"PyTorch {torch.__version__.split('+')[0]} on {blas_of(torch)}",
        "threads": torch.get_num_threads(),
        "results": measure(torch, options),
    }))


if __name__ == "__main__":
    main()
