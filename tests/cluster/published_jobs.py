"""Jobs of `tbd-sim plan --table` that rows of published training runs are: shape of the network, layout, stack, GPU and machine, with
the source of what a row does not say. Each function returns keys and values of a job."""
import re

# By name in the table: name in the catalogue, and its usual machine.
GPUS = {"A100-SXM4-80GB": ("a100_sxm_80gb", "dgx_a100_80gb"), "A100-SXM4-40GB": ("a100_sxm_40gb", "dgx_a100"),
        "A800-SXM4-80GB": ("a800_sxm_80gb", "dgx_a100_80gb"), "H100-SXM5-80GB": ("h100_sxm", "dgx_h100"),
        "H100-SXM-96GB-HBM2e-500W": ("h100_sxm_96gb_500w", "dgx_h100"), "B200": ("b200", "dgx_b200"),
        "B200-SXM-180GB": ("b200", "dgx_b200"), "GB200": ("gb200", "gb200_nvl72"),
        "B300": ("b300", "dgx_b300"), "GB300": ("gb300", "gb300_nvl72"), "H200": ("h200", "dgx_h200")}

# Machines of sets whose network is not that of the GPU's usual machine.
MACHINES = {"vtrain_multi": "a100_8x_hdr_4x", "bigscience_a100": "jean_zay_a100", "internevo": "a100_8x_roce_4x",
            ("mpt_foundry", "A100-SXM4-80GB"): "a100_8x_roce_8x", ("mpt_foundry", "A100-SXM4-40GB"): "a100_8x_roce_8x"}


def number(text, unless=0):
    return int(float(text)) if text not in ("", "MLA") else unless


def shape_of(row):
    shape = {"layers": number(row["layers"]), "hidden": number(row["hidden"]), "heads": number(row["heads"]),
             "vocabulary": number(row["vocab"])}
    gated = row["gated_mlp"] == "y"
    name = row["model"].lower()
    llama = gated
    shape["gated"] = "true" if gated else "false"
    shape["rms_norm"] = shape["rotary"] = "true" if llama else "false"
    mpt = row["set"] == "mpt_foundry"
    gpt_oss = "gpt-oss" in name or "gpt_oss" in name
    shape["bias"] = "true" if gpt_oss else "false" if llama or mpt or "nemotron" in name else "true"
    if "nemotron" in name:
        shape["rotary"] = "true"
    shape["positions"] = 0 if llama or "nemotron" in name or "bloom" in name else number(row["seq_len"])
    shape["tied"] = "false" if llama or "nemotron" in name else "true"
    shape["dropout"] = "true" if row["set"].startswith("vtrain") or row["set"] == "mcore_golden" else "false"
    if "disable-bias-linear" in row["note"]:
        shape["bias"] = "false"
    if "untie-embeddings" in row["note"]:
        shape["tied"] = "false"
    if row["kv_heads"] == "MLA":
        shape.update(kv_heads=shape["heads"], head_size=192, value_size=128, kv_rank=512, rotary_size=64, q_rank=1536)
    else:
        shape["kv_heads"] = number(row["kv_heads"], shape["heads"])
        if "qwen3" in name:
            shape["head_size"] = 128
        if gpt_oss:
            shape["head_size"] = 64
        if "nemotron4-340b" in name:
            shape["head_size"] = 192
    moe = row["moe"]
    if moe:
        experts, active = re.match(r"(\d+)/(\d+)", moe).groups()
        ffn = number(row["ffn"])
        shared = re.search(r"shared\((\d+)\)", moe)
        many = re.search(r"\+(\d+)shared", moe)
        shape.update(experts=experts, experts_per_token=active, expert_ffn=ffn,
                     shared_ffn=int(shared.group(1)) if shared else ffn * int(many.group(1)) if many else 0)
        shape.update(dense_blocks_of(row))
    else:
        shape["ffn"] = number(row["ffn"], 4 * shape["hidden"])
    return shape


def dense_blocks_of(row):
    """Blocks without experts: as the row says, else of the model's published configuration."""
    first = re.search(r"first layer dense ffn (\d+)", row["note"])
    if first:
        return {"dense_layers": 1, "ffn": first.group(1)}
    every_second = re.search(r"every 2nd layer; dense ffn (\d+)", row["moe"])
    if every_second and number(row["pp"], 1) == 1:  # where they stand does not matter on one stage
        return {"dense_layers": number(row["layers"]) // 2, "ffn": every_second.group(1)}
    name = row["model"].lower()
    if "deepseek-v3" in name or "deepseek v3" in name:
        return {"dense_layers": 3, "ffn": 18432}
    if "kimi" in name:
        return {"dense_layers": 1, "ffn": 18432}
    return {}


def layout_of(row):
    zero = row["zero_stage_or_fsdp"]
    layout = {k: number(row[k], 1) for k in ("dp", "tp", "pp", "vp", "cp", "ep")}
    # NVIDIA/NeMo@8cfedd72, scripts/performance/recommended_model_configs, with the same ranks and batch. The table's
    # single chunk would leave a bubble of 30 %, with which no H100 reaches the 50 % of its peak that were measured.
    if row["set"] == "dgxc_benchmarking" and row["model"] == "nemotron4-340b":
        layout["vp"] = 12
    # Megatron-Core shares experts' matrices among the tensor-parallel ranks unless it is told otherwise
    # (model_parallel_config.py@d98e8a64); its recipes tell it to keep experts whole.
    if row["set"] == "mcore_golden" and row["moe"]:
        said = re.search(r"expert-tensor-parallel-size=(\d+)", row["note"])
        layout["etp"] = int(said.group(1)) if said else layout["tp"]
    layout["micro_batch"] = number(row["micro_batch"], 1)
    layout["sequence_parallel"] = "true" if row["sequence_parallel"] == "y" and layout["tp"] > 1 else "false"
    layout["zero"] = 3 if "FSDP" in zero else 1 if "ZeRO-1" in zero or "distributed" in zero else 0
    # Scripts of adapters on Blackwell: cp_comm_type a2a (megatron_gpt_peft_tuning_config.yaml).
    if ("cp a2a" in row["note"] or is_lora_of_blackwell(row)) and layout["cp"] > 1:
        layout["cp_exchange"] = "all_to_all"
    if "shard-grad-op" in zero or "reshard_after_forward=False" in zero:
        layout["reshard"] = "false"
    if "within 8" in zero:
        layout["shard"] = min(8, layout["dp"] * layout["cp"])
    text = row["recompute"]
    if text.startswith("full"):
        layout["recompute"] = "full"
        layers = re.search(r"full(?: block|,) (\d+)", text)
        if layers:
            layout["recompute_layers"] = layers.group(1)
    elif re.match(r"selective(:| \[)", text):  # modules of Megatron-Core
        layout.update(recompute="selective", recompute_modules=modules_of(row, text))
    elif "op" in text and "selective" in text and row["set"].startswith("torch"):
        layout["recompute"] = "operators"
    elif text.startswith("selective") and row["set"] not in ("torchtitan",):
        layout["recompute"] = "selective"
    chunks = layout["pp"] * layout["vp"]
    layers = number(row["layers"])
    if layers % chunks and (layers + 2) % chunks:
        layout["uneven"] = "true"
    return layout


def modules_of(row, text):
    """Of the modules that the row names those that the model has."""
    modules = re.findall(r"\w+", text)[1:]
    return ",".join(m for m in modules if row["moe"] or m not in ("moe", "moe_act"))


def stack_of(row):
    framework = row["framework"].lower()
    stack = {}
    if "deepspeed" in framework:
        stack["stack"] = "megatron_deepspeed"
    elif "composer" in framework:
        stack["stack"] = "composer"
    elif "nemo" in framework or row["set"] in ("mlperf_pretrain", "mlperf_lora"):
        stack["stack"] = "nemo"
    elif "torchtitan" in framework:
        stack["stack"] = "fsdp_compiled" if row["compile"].startswith("y") else "fsdp"
    elif "internevo" in framework:
        stack["stack"] = "internevo"
    else:
        stack["stack"] = "megatron"
    if "not fused" in row["optimizer"] or (row["set"] == "internevo" and "FSDP" in row["zero_stage_or_fsdp"]):
        stack["foreach_update"] = "true"
    chunks = re.search(r"chunked cross entropy \((\d+) chunks\)", row["note"])
    if chunks:
        stack["loss_chunks"] = chunks.group(1)
    if "graph_trainer" in row["compile"]:  # pytorch/torchtitan@b5bcd76c, models/llama3/config_registry.py
        stack["loss_chunks"] = 8
    if row["set"] == "torchtitan" and row["version"] < "2024-06-12":  # pytorch/torchtitan@e29b6b4d, del logits
        stack["held_scores"] = 4
    if row["version"].startswith("README of 2023"):  # PyTorch 1.13 and 2.0, before checkpoints ended early
        stack["early_stop"] = "false"
    if "PURE" in row["zero_stage_or_fsdp"]:
        stack["reduce_bytes"] = 2
    if "bf16 optimizer with fp32 grad accumulation" in row["optimizer"]:
        stack["gradient_bytes"] = 6
    if "no overlap" in row["zero_stage_or_fsdp"]:
        stack["overlap_replicas"] = "false"
    if "TP overlap" in row["note"]:
        stack["overlap_tensor"] = "true" if re.search("TP overlap (True|1)", row["note"]) else "false"
    # NVIDIA-NeMo/Megatron-Bridge@067f987d, src/megatron/bridge/perf_recipes/llama: Userbuffers but for nvfp4.
    if row["set"] == "megatron_bridge" and not row["moe"] and layout_of(row)["tp"] > 1:
        stack["overlap_tensor"] = "false" if precision_of(row) == "nvfp4" else "true"
    if "cuda graphs: 1" in row["note"] or re.search(r"cuda_graph [a-z_]*/?full_iteration", row["note"]):
        stack["cuda_graphs"] = "true"
    elif "cuda_graph transformer_engine/" in row["note"]:
        stack["cuda_graphs"] = "but_experts" if "/['attn'" in row["note"] else "routers"
    if "a2a overlap True" in row["note"]:
        stack["overlap_experts"] = "true"
    if re.search("moe dispatcher (hybridep|deepep)", row["note"]):
        stack["dispatch_once"] = "true"
    if "(cef)" in row["note"] or "cross-entropy-loss-fusion" in row["note"]:
        stack["fused_loss"] = "true"
    if re.search("attention-backend=unfused|transformer-impl=local", row["note"]) or is_unfused(row):
        stack["fused_attention"] = "false"
    if is_lora_of_blackwell(row):
        stack.update(scripts_of_blackwell(row))
    # TransformerEngine@32db39288 (December 2023) was first to prefer cuDNN's attention on Hopper; before it flash-attn
    # was taken wherever it was installed: at v0.8, which mlcommons/training_results_v3.0 names (NVIDIA/benchmarks/gpt3,
    # Dockerfile), of its first version, at v0.12 (setup.py, of August 2023) the second.
    if re.search(r"MLPerf v3\.[01]", row["version"]) and row["gpu"].startswith("H100"):
        stack["attention_kernel"] = "flash1" if "v3.0" in row["version"] else "flash2"
    if "deterministic-mode" in row["note"]:  # of these tests with CUBLAS_WORKSPACE_CONFIG :4096:8, eight of 4 MiB
        stack["cublas_workspace"] = 32
    if row["set"] == "megatron_bridge":
        stack.update(recipe_of_bridge(row))
    # Transformer Engine has a loss since February 2025 (8ca2caf8); adapters are trained without it
    # (NVIDIA/NeMo@8cfedd72, scripts/performance/llm/mlperf_lora_llama2_70b.py).
    if row["set"] in ("nemo_2407", "mlperf_lora") or re.search(r"MLPerf v[34]\.", row["version"]):
        stack["fused_loss"] = "false"
    # The same script: fp8_param_gather, disable_parameter_transpose_cache. PRE_QUANTIZED_MODEL (config_common_fp4.sh of
    # v5.1): frozen weights are kept in fp4 by rows and by columns, 9/16 bytes each.
    if row["set"] == "mlperf_lora" and precision_of(row) in ("fp8", "nvfp4"):
        stack["parameter_bytes"] = 1
    return stack


def is_lora_of_blackwell(row):
    """Rows of MLPerf v5.0 and v5.1 that train adapters by NVIDIA's scripts of mlcommons/training_results_v5.0 and v5.1,
    benchmarks/llama2_70b_lora, which other submitters took over."""
    return row["set"] == "mlperf_lora" and re.search(r"MLPerf v5\.[01]", row["version"]) and re.search("B[23]00", row["gpu"])


def scripts_of_blackwell(row):
    """What those scripts set: USE_TE_OPS=1 (config_common.sh of v5.1, not of v5.0), FP8_ACT=1 without context parallelism (config_DGXB200_1x8x1xtp1pp1cp1.sh, of GB200 v5.0's
    config_GB200_2x4x1xtp1pp1cp1.sh alone), MCORE_CUDA_GRAPH=1 with it (config_GB200_18x4x1xtp1pp1cp8.sh,
    config_DGXB200_8x8x1xtp1pp1cp8.sh)."""
    later = "v5.1" in row["version"]
    fused = {"operator_fuser": "true"} if later else {}
    if number(row["cp"], 1) > 1:
        return {"cuda_graphs": "true", **fused}
    return fused if row["gpu"].startswith("GB") and later else {"fp8_activations": "true", **fused}


def computes_attention_in_fp8(row):
    """Where the row does not say it: the scripts of is_lora_of_blackwell set FP8_DPA=1 (config_common.sh). With context
    parallelism TransformerEngine has had it since 26c8fcc92 of August 2024; v1.6, which v4.0's Dockerfile names, takes
    16 bits there, whatever FP8_DPA says (attention.py, FusedAttention)."""
    if precision_of(row) not in ("fp8", "nvfp4"):
        return False
    if "MLPerf v4.0" in row["version"] and number(row["cp"], 1) > 1:
        return False
    return "fp8 attention 1" in row["note"] or bool(is_lora_of_blackwell(row))


def is_unfused(row):
    """Transformer Engine's cuDNN attention is not deterministic before Hopper, and the container of older releases
    has no flash-attn that is (attention/dot_product_attention/utils.py@d0067d0d, get_attention_backend); rings of
    contexts need one of both."""
    return ("deterministic-mode" in row["note"] and "env lts" in row["note"] and row["gpu"].startswith("A100")
            and number(row["cp"], 1) == 1)


def recipe_of_bridge(row):
    """NVIDIA-NeMo/Megatron-Bridge@067f987d, src/megatron/bridge/perf_recipes: _common.py (_benchmark_common,
    _perf_precision), deepseek/common.py (moments in 16 bits)."""
    recipe = {"fused_loss": "in_place", "gradient_bytes": 2, "reduce_bytes": 2}
    per_tensor = re.search(r"(?i)current.scaling|fp8-cs|^fp8$", row["precision"])
    if per_tensor and re.search("B[23]00", row["gpu"]):  # whose products need no transpose in memory
        recipe["parameter_bytes"] = 1
    if "deepseek" in row["model"].lower():
        recipe["moment_bytes"] = 4
    return recipe


def precision_of(row):
    text = row["precision"].lower()
    if "fp4" in text:
        return "nvfp4"
    if "fp8" in text:
        return "fp8"
    if text.startswith("fp16"):
        return "fp16"
    return "bf16"


def job_of(row):
    gpu, machine = GPUS[row["gpu"]]
    job = {"gpu": gpu, "machine": machine, "gpus": number(row["gpus"]), "global_batch": number(row["global_batch"]),
           "seq_len": number(row["seq_len"]), "precision": precision_of(row)}
    job["machine"] = MACHINES.get((row["set"], row["gpu"]), MACHINES.get(row["set"], machine))
    if computes_attention_in_fp8(row):
        job["fp8_attention"] = "true"
    if row["set"] == "mlperf_lora":  # of the benchmark's rules: queries, keys, values and the output
        job.update(lora_rank=16, lora_targets="attention,output")
    return job
