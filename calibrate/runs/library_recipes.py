"""Training steps of libraries, as their users write them: RECIPES has, by "library/step", what makes a step and options of a capture."""
import functools
import importlib

import torch
import torch.nn.functional as F
from torch import nn

RECIPES = {}


def recipe(library, **options):
    """Enters what returns a function of the batch, as `tbdsim.capture` takes it."""
    return lambda make: RECIPES.setdefault(f"{library}/{make.__name__}", (make, options)) and make


def trains(make, data, loss, optimizer=torch.optim.AdamW, dtype=torch.bfloat16):
    """A step of the model that `make` builds: autocast, clipping, an optimizer, the loss printed."""

    def train_step(batch):
        model = make().cuda().train()
        updated = optimizer([parameter for parameter in model.parameters() if parameter.requires_grad], lr=1e-4)
        inputs = data(batch)

        def step():
            updated.zero_grad()
            with torch.autocast("cuda", dtype=dtype):
                found = loss(model, *inputs)
            found.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            updated.step()
            return found.item()

        return step

    return train_step


def tokens(batch, length=128):
    return torch.zeros(batch, length, dtype=torch.long, device="cuda")


def images(batch, size=224, channels=3):
    return torch.empty(batch, channels, size, size, device="cuda")


def classes(batch):
    return torch.zeros(batch, dtype=torch.long, device="cuda")


def named(path, *args, **kwargs):
    """What builds the class of that path, as "monai.networks.nets.UNet"."""
    module, name = path.rsplit(".", 1)
    return lambda: getattr(importlib.import_module(module), name)(*args, **kwargs)


def llama(**changes):
    transformers = importlib.import_module("transformers")
    sizes = {"vocab_size": 32000, "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 2, "num_attention_heads": 16}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**sizes, **changes}))


def language(model, numbers):
    return model(input_ids=numbers, attention_mask=torch.ones_like(numbers), labels=numbers).loss


def adapted(method, checkpointed=False, **options):
    """A step of Llama with adapters of peft, perhaps with blocks that are computed again."""
    peft = importlib.import_module("peft")

    def make():
        model = llama()
        if checkpointed:
            model.gradient_checkpointing_enable()
            model.enable_input_require_grads()
        return peft.get_peft_model(model, getattr(peft, method)(task_type="CAUSAL_LM", **options))

    return trains(make, lambda batch: (tokens(batch),), language)


def classified(make, size=224, **options):
    return trains(make, lambda batch: (images(batch, size), classes(batch)), lambda model, x, y: F.cross_entropy(model(x), y), **options)


PROJECTIONS = ["q_proj", "v_proj"]
for entered, options in {
    "lora": {"method": "LoraConfig", "r": 16, "target_modules": PROJECTIONS},
    "dora": {"method": "LoraConfig", "r": 16, "use_dora": True, "target_modules": "all-linear"},
    "lora_checkpointed": {"method": "LoraConfig", "r": 16, "checkpointed": True, "target_modules": PROJECTIONS},
    "ia3": {"method": "IA3Config"},
    "prefix_tuning": {"method": "PrefixTuningConfig", "num_virtual_tokens": 20},
    "vera": {"method": "VeraConfig", "r": 32, "target_modules": PROJECTIONS},
}.items():
    RECIPES[f"peft/{entered}"] = (functools.partial(adapted, **options), {})


@recipe("accelerate")
def fp16_loop():
    accelerate = importlib.import_module("accelerate")

    def train_step(batch):
        accelerator = accelerate.Accelerator(mixed_precision="fp16")
        model = llama()
        model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
        numbers = tokens(batch)

        def step():
            accelerator.backward(language(model, numbers))
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

        return step

    return train_step


@recipe("trl")
def sft():
    trl, transformers, tokenizers, datasets = map(importlib.import_module, ("trl", "transformers", "tokenizers", "datasets"))
    words = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(tokenizers.models.WordLevel({"<pad>": 0, "a": 1}, unk_token="a")), pad_token="<pad>", eos_token="<pad>"
    )

    def train_step(batch):
        with torch.device("cpu"):
            told = trl.SFTConfig(output_dir="unused", bf16=True, report_to=[], save_strategy="no")
            trainer = trl.SFTTrainer(llama(), args=told, train_dataset=datasets.Dataset.from_dict({"text": ["a a"]}), processing_class=words)
        trainer.model.cuda()
        trainer.create_optimizer()
        trainer.current_gradient_accumulation_steps = 1
        wrapped, numbers = trainer.accelerator.prepare(trainer.model), tokens(batch)

        def step():
            trainer.training_step(wrapped, {"input_ids": numbers, "attention_mask": torch.ones_like(numbers), "labels": numbers}, None)
            trainer.optimizer.step()
            wrapped.zero_grad()

        return step

    return train_step


def denoised(make, data, predict):
    """The step of diffusers' examples: noise at random times, its prediction, the mean squared error."""

    def loss(model, x, *others):
        schedule = importlib.import_module("diffusers").DDPMScheduler()
        noise, at = torch.randn_like(x), torch.randint(0, 1000, (x.shape[0],), device=x.device)
        return F.mse_loss(predict(model, schedule.add_noise(x, noise, at), at, *others).float(), noise)

    return trains(make, data, loss)


def text(batch, width, length=77):
    return torch.empty(batch, length, width, device="cuda")


@recipe("diffusers")
def stable_diffusion():
    make = named("diffusers.UNet2DConditionModel", block_out_channels=(320, 640, 1280, 1280), layers_per_block=1, cross_attention_dim=768)
    return denoised(make, lambda b: (images(b, 64, 4), text(b, 768)), lambda m, x, t, c: m(x, t, c).sample)


@recipe("diffusers")
def dit():
    make = named("diffusers.DiTTransformer2DModel", num_layers=2, sample_size=32, out_channels=4)
    return denoised(make, lambda b: (images(b, 32, 4), classes(b)), lambda m, x, t, y: m(x, timestep=t, class_labels=y).sample)


@recipe("diffusers")
def wan():
    make = named("diffusers.WanTransformer3DModel", num_attention_heads=12, attention_head_dim=128, num_layers=2, ffn_dim=8960)
    data = lambda b: (torch.empty(b, 16, 5, 32, 32, device="cuda"), text(b, 4096, 128))
    return denoised(make, data, lambda m, x, t, c: m(x, t, c).sample)


@recipe("diffusers")
def vae():
    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4}
    make = named("diffusers.AutoencoderKL", block_out_channels=(128, 256, 512, 512), layers_per_block=2, **blocks)

    def loss(model, x):
        latent = model.encode(x).latent_dist
        return F.l1_loss(model.decode(latent.sample()).sample.float(), x) + 1e-6 * latent.kl().mean()

    return trains(make, lambda b: (images(b, 256),), loss)


def on_graphs(name):
    """A model of torch_geometric on graphs of 200 nodes and 1,000 edges."""
    data = lambda b: (torch.empty(200 * b, 128, device="cuda"), torch.zeros(2, 1000 * b, dtype=torch.long, device="cuda"), classes(200 * b))
    make = named(f"torch_geometric.nn.{name}", 128, 64, 3, 40)
    return trains(make, data, lambda model, x, edges, y: F.cross_entropy(model(x, edges), y))


for entered in ("GCN", "GAT", "GraphSAGE", "GIN", "EdgeCNN"):
    RECIPES[f"torch_geometric/{entered.lower()}"] = (functools.partial(on_graphs, entered), {})


def segmented(make, size, dims=2):
    data = lambda b: (torch.empty(b, 3 if dims == 2 else 1, *[size] * dims, device="cuda"), torch.zeros(b, *[size] * dims, dtype=torch.long, device="cuda"))
    return trains(make, data, lambda model, x, y: F.cross_entropy(model(x), y))


for entered in ("Unet", "FPN", "DeepLabV3Plus", "Segformer"):
    make = named(f"segmentation_models_pytorch.{entered}", "resnet34", encoder_weights=None, classes=10)
    RECIPES[f"segmentation_models_pytorch/{entered.lower()}"] = (functools.partial(segmented, make, 256), {})
for entered, arguments in {"UNet": (3, 1, 2, (16, 32, 64, 128), (2, 2, 2)), "SwinUNETR": (1, 2), "UNETR": (1, 2, (96, 96, 96)), "SegResNet": (3, 8, 1, 2)}.items():
    RECIPES[f"monai/{entered.lower()}"] = (functools.partial(segmented, named(f"monai.networks.nets.{entered}", *arguments), 96, 3), {})


@recipe("ultralytics", largest_sizes=True, assumed_value=1)
def yolo11n():
    tasks, settings = importlib.import_module("ultralytics.nn.tasks"), importlib.import_module("ultralytics.cfg")

    def train_step(batch):
        with torch.device("cpu"):
            model = tasks.DetectionModel("yolo11n.yaml", verbose=False)
        model.args = settings.get_cfg()
        model = model.cuda().train()
        optimizer, scaler = torch.optim.SGD(model.parameters(), 0.01, momentum=0.937, nesterov=True), torch.amp.GradScaler("cuda")
        boxes = {"cls": torch.zeros(8 * batch, 1, device="cuda"), "bboxes": torch.empty(8 * batch, 4, device="cuda"), "batch_idx": torch.zeros(8 * batch, device="cuda")}

        def step():
            with torch.autocast("cuda", dtype=torch.float16):
                loss = model({"img": images(batch, 640), **boxes})[0].sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

        return step

    return train_step


RECIPES["open_clip/vit_b32"] = (
    lambda: trains(
        lambda: importlib.import_module("open_clip").create_model("ViT-B-32", pretrained=None, device="cuda"),
        lambda batch: (images(batch), tokens(batch, 77)),
        lambda model, x, t: importlib.import_module("open_clip").ClipLoss()(*model(x, t)[:3]),
    ),
    {"batches": [64]},
)
RECIPES["vit_pytorch/simple_vit"] = (
    lambda: classified(named("vit_pytorch.SimpleViT", image_size=224, patch_size=32, num_classes=1000, dim=512, depth=2, heads=8, mlp_dim=1024)), {}
)
for entered, optimizer in {"bitsandbytes/adamw8bit": "bitsandbytes.optim.AdamW8bit", "lion_pytorch/lion": "lion_pytorch.Lion", "torchao/adamw8bit": "torchao.optim.AdamW8bit"}.items():
    step = lambda path=optimizer: trains(llama, lambda batch: (tokens(batch),), language, lambda p, lr: named(path, p, lr=lr)())
    RECIPES[entered] = (step, {})
RECIPES["torchao/float8"] = (
    lambda: trains(lambda: importlib.import_module("torchao.float8").convert_to_float8_training(llama()), lambda batch: (tokens(batch),), language), {}
)


@recipe("plain")
def gradient_penalty():
    """WGAN-GP's critic: the gradient of a gradient of convolutions."""
    make = lambda: nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(64, 128, 4, 2, 1), nn.Flatten(), nn.Linear(32768, 1))

    def loss(model, x):
        mixed = x.detach().requires_grad_(True)
        slope = torch.autograd.grad(model(mixed).sum(), mixed, create_graph=True)[0]
        return ((slope.flatten(1).norm(2, dim=1) - 1) ** 2).mean() - model(x).mean()

    return trains(make, lambda batch: (images(batch, 64),), loss)


@recipe("plain")
def data_parallel():
    def train_step(batch):
        torch.distributed.init_process_group("nccl")
        return trains(lambda: nn.parallel.DistributedDataParallel(llama().cuda(), device_ids=[0]), lambda b: (tokens(b),), language)(batch)

    return train_step
