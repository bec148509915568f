"""The tables of docs/paper.md: what the TBD paper printed, and what the program predicts for it. Functions return lines of Markdown."""
import csv

from tables import table


def prediction(run, model, framework, batch, gpu="p4000"):
    """The row of a prediction as CSV: {column: text}."""
    printed = run(["--gpu", gpu, "--batch", str(batch), "--model", model, "--framework", framework, "--format", "csv"])
    return next(csv.DictReader(printed.splitlines()))


def statements(run):
    """The paper's statements in prose."""
    rows = {}

    def value(model, framework, batch, column="throughput"):
        key = model, framework, batch
        if key not in rows:
            rows[key] = prediction(run, *key)
        return float(rows[key][column])

    def per_cent(model, framework, batch, column="gpu_utilization"):
        return f"{100 * value(model, framework, batch, column):.0f}"

    def maps(model, framework, batch):
        return f"{100 * value(model, framework, batch, 'memory_feature_maps') / value(model, framework, batch, 'memory_model'):.0f}"

    frameworks = "tensorflow", "mxnet", "cntk"
    busy = [100 * value(model, framework, 32, "gpu_utilization") for model in ("resnet50", "inception_v3") for framework in frameworks]
    detectors = [("faster_rcnn", framework, 1) for framework in ("tensorflow", "mxnet")]
    growth = ", ".join(f"{value('inception_v3', f, 32) / value('inception_v3', f, 16):.2f}" for f in frameworks)
    lines = [
        ["NMT, TensorFlow, batch 128", "365 sentences/s", f"{value('seq2seq', 'tensorflow', 128):.0f}, see [below](#nmt)"],
        ["NMT, batch 128 over batch 64", "1.25", f"{value('seq2seq', 'tensorflow', 128) / value('seq2seq', 'tensorflow', 64):.2f}"],
        ["Sockeye, MXNet, batch 64 (fitted to)", "229 sentences/s", f"{value('seq2seq', 'mxnet', 64):.0f}"],
        ["Faster R-CNN, TensorFlow and MXNet", "2.3 and 2.3 images/s", " and ".join(f"{value(*d):.2f}" for d in detectors)],
        ["its GPU utilization", "89.4 and 90.3 %",
         f"{' and '.join(per_cent(*d) for d in detectors)} %: copies of slim's variables and the host's update are no kernels"],
        ["its FP32 utilization", "58.9 and 70.9 %",
         f"{' and '.join(per_cent(*d, 'fp32_utilization') for d in detectors)} % by equation 2; nvprof's level counts all instructions"],
        ["Inception-v3, batch 32 over 16, on all three", "less than 1.10", growth],
        ["large batches of CNNs keep the GPU busy", "95 % or more",
         f"ResNet-50 and Inception-v3, batch 32: {min(busy):.0f} to {max(busy):.0f} %, TensorFlow's the least (slim updates on the host)"],
        ["so does Deep Speech 2", "95 % or more",
         f"{per_cent('deep_speech2', 'mxnet', 8)} %, batch 8: the two directions run side by side on the two workers of MXNet's engine"],
        ["feature maps of the memory: ResNet-50, Seq2Seq, Deep Speech 2", "89, 89, 62 %",
         f"{maps('resnet50', 'mxnet', 32)}, {maps('seq2seq', 'mxnet', 64)}, {maps('deep_speech2', 'mxnet', 4)} to {maps('deep_speech2', 'mxnet', 8)} %, "
         "see [memory](model/memory.md#against-measurements)"],
    ]
    return table(["statement", "printed", "predicted"], lines)


def nmt(run):
    """Times of a step of NMT in TensorFlow."""
    cases = [("TITAN X (Pascal), fitted to", "titanx_pascal", "0.17 s"),
             ("K40m; predicted: half a K80, which has 0.83 of its bandwidth", "k80", "0.37 s"), ("P4000 (the paper)", "p4000", "0.351 s")]
    return table(["GPU, batch 128", "measured", "predicted"],
                 [[name, measured, f"{float(prediction(run, 'seq2seq', 'tensorflow', 128, gpu)['iteration_time']):.3f} s"] for name, gpu, measured in cases])


# Printed rows of Table V (TensorFlow) and VI (MXNet): the printed name, its share in %, the kernel that is predicted.
TABLE_V = [("magma_lds128_sgemm_kernel", "8.36", None), ("bn_fw_1C11_kernel_new, taken for bn_bw", "5.53", "cudnn::detail::bn_bw_1C11_kernel_new"),
           ("bn_fw_tr_1C11_kernel_new", "4.65", "cudnn::detail::bn_fw_tr_1C11_kernel_new"),
           ("EigenMetaKernel (of one expression)", "3.12", "Eigen::internal::EigenMetaKernel<"), ("BiasNHWCKernel", "2.48", "tensorflow::BiasNHWCKernel")]
TABLE_VI = [("bn_bw_1C11_kernel_new", "9.43", "cudnn::detail::bn_bw_1C11_kernel_new"),
            ("bn_fw_tr_1C11_kernel_new", "7.96", "cudnn::detail::bn_fw_tr_1C11_kernel_new"),
            ("activation_bw_4d_kernel", "5.14", "cudnn::detail::activation_bw_4d_kernel"),
            ("activation_fw_4d_kernel", "3.52", "cudnn::detail::activation_fw_4d_kernel"),
            ("mxnet_generic_kernel (of one expression)", "2.85", "mxnet::op::mxnet_op::mxnet_generic_kernel<gradient_sum")]


def shares(run, framework):
    """{kernel: its share of an iteration of ResNet-50, in %}."""
    printed = run(["kernels", "resnet50", "--framework", framework, "--gpu", "p4000", "--batch", "32", "--by", "kernel", "--format", "csv"])
    return {row["kernel"]: 100 * float(row["share"]) for row in csv.DictReader(printed.splitlines())}


def predicted_share(found, kernel):
    """The share of `kernel`, or from the least to the largest of the expressions whose names begin with it."""
    those = [share for name, share in found.items() if kernel and name.startswith(kernel)]
    if not those:
        return ""
    return f"{those[0]:.2f}" if len(those) == 1 else f"{min(those):.1f} to {max(those):.1f}"


def tables_5_6(run):
    """The longest kernels that use little of the peak, in % of an iteration."""
    cells = [[[name, printed, predicted_share(found, kernel)] for name, printed, kernel in rows]
             for rows, found in ((TABLE_V, shares(run, "tensorflow")), (TABLE_VI, shares(run, "mxnet")))]
    return table(["TensorFlow", "printed", "predicted", "MXNet", "printed", "predicted"], [left + right for left, right in zip(*cells)])


def all_tables(run):
    return {"paper_statements": lambda: statements(run), "paper_nmt": lambda: nmt(run), "paper_kernels": lambda: tables_5_6(run)}
