// The controls of `tbd-sim serve`: lists and sliders that ask the server what becomes of the prediction. What
// there is to choose from stands in the page as JSON; the controls are controls.js's, the charts page.js's.
"use strict";
(() => {
  const {element, listOf, sliderOf, refuse, fetchAnswer, showReport, showTook, layOut, message, command, status} = window.tbdControls;
  const given = JSON.parse(document.getElementById("controls").textContent);
  const STEPS = [...Array(33).keys()].map((step) => 2 ** ((step - 16) / 8));  // of the card's own number
  const BATCHES = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096];
  const NAMES = {throughput: "throughput", iteration_time: "iteration", gpu_utilization: "GPU utilization",
                 fp32_utilization: "FP32 utilization", cpu_utilization: "CPU utilization", memory_total: "GPU memory",
                 largest_batch: "largest batch"};
  const REST = 350;  // ms without a change after which every kernel is asked for, too

  const state = {...given.start, gpus: 1, machines: 1, network: 10, bandwidth: 1, sms: 1};
  const gpu = () => given.gpus.find((one) => one.name === state.gpu);
  const model = () => given.models.find((one) => one.name === state.model);
  const smsAt = (factor) => Math.max(1, Math.round(gpu().sms * factor));
  const bandwidthAt = (factor) => Number((gpu().bandwidth * factor).toPrecision(4));
  const factorText = (factor) => (factor === 1 ? "as sold" : `${factor > 1 ? "+" : "\u2212"}${Math.abs(Math.round((factor - 1) * 100))} %`);

  const LISTS = [
    {key: "model", label: "model", options: () => given.models.map((one) => [one.name, one.title])},
    {key: "framework", label: "framework", options: () => model().frameworks.map((name) => [name, name])},
    {key: "gpu", label: "GPU", options: () => given.gpus.map((one) => [one.name, one.title])},
    {key: "precision", label: "precision", options: () => given.precisions.map((name) => [name, name])},
  ];
  const SLIDERS = [
    {key: "batch", label: "batch", values: [...new Set([...BATCHES, given.start.batch])].sort((a, b) => a - b),
     text: (value) => (state.gpus * state.machines > 1 ? `${value} on each GPU` : String(value))},
    {key: "bandwidth", label: "bandwidth", values: STEPS, text: (value) => `${bandwidthAt(value)} GB/s, ${factorText(value)}`},
    {key: "sms", label: "SMs", values: STEPS, text: (value) => `${smsAt(value)}, ${factorText(value)}`},
    {key: "gpus", label: "GPUs", values: [1, 2, 3, 4, 5, 6, 7, 8], text: (value) => (value === 1 ? "1" : `${value} in a machine`)},
    {key: "machines", label: "machines", values: [1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256], text: String},
    {key: "network", label: "network", values: [1, 2.5, 5, 10, 25, 40, 50, 100, 200, 400, 800],
     text: (value) => (state.machines === 1 ? "one machine needs none" : `${value} Gbit/s`)},
  ];

  // What the server is asked: a change only where it is one.
  function query() {
    const asked = new URLSearchParams();
    for (const key of ["model", "framework", "gpu", "precision", "batch"]) asked.set(key, state[key]);
    if (state.bandwidth !== 1) asked.append("set", `gpu.memory_bandwidth=${bandwidthAt(state.bandwidth)} GB/s`);
    if (smsAt(state.sms) !== gpu().sms) asked.append("set", `gpu.sm_count=${smsAt(state.sms)}`);
    if (state.gpus > 1) asked.set("gpus", state.gpus);
    if (state.machines > 1) {
      asked.set("machines", state.machines);
      asked.set("network", `${state.network} Gbit/s`);
    }
    return asked;
  }

  const notes = element("p", {className: "notes", id: "file-notes", hidden: true});
  const kernelTimes = element("p", {className: "notes"});
  const inputs = {};  // key -> a function that shows its value
  let linked = true;  // the address names a model and a GPU that are there

  function optionsOf(list) {
    const {input, label} = listOf(list, (value) => {
      state[list.key] = value;
      if (list.key === "model") suitModel();
      refresh();
      ask();
    });
    inputs[list.key] = () => {
      input.replaceChildren(...list.options().map(([value, text]) => new Option(text, value)));
      input.value = state[list.key];
    };
    return label;
  }

  function rangeOf(slider) {
    const {input, show, label} = sliderOf(slider, (value) => {
      state[slider.key] = value;
      refresh();
      ask();
    });
    inputs[slider.key] = () => {
      show(slider.values.indexOf(state[slider.key]), slider.text(state[slider.key]));
      if (slider.key === "network") input.disabled = state.machines === 1;
    };
    return label;
  }

  const refresh = () => Object.values(inputs).forEach((show) => show());

  function reset() {
    Object.assign(state, {bandwidth: 1, sms: 1, gpus: 1, machines: 1});
    refresh();
    ask();
  }

  async function once(kernels) {
    const asked = query();
    if (kernels) asked.set("kernels", "1");
    const answer = await showReport(`report?${asked}`, NAMES);
    if (!answer) return;
    command.textContent ||= "has no word for several GPUs of changed hardware";
    kernelTimes.textContent = `Kernel times: ${answer.kernel_times}. Everything is predicted, nothing measured.`;
    if (!kernels) showTook(answer.took);
  }

  // One question at a time; what changed meanwhile is the next one. Once all is at rest every kernel follows.
  let busy = false;
  let changed = false;
  let rest;
  async function ask(kernels = false) {
    clearTimeout(rest);
    delete document.documentElement.dataset.atRest;
    changed = true;
    if (busy) return;
    busy = true;
    let withKernels = kernels;
    for (; changed; withKernels = withKernels && !changed) {
      changed = false;
      await once(withKernels);
    }
    busy = false;
    history.replaceState(null, "", `?${query()}`);
    if (withKernels) document.documentElement.dataset.atRest = "true";
    else rest = setTimeout(() => ask(true), REST);
  }

  // Puts a model or a GPU that the server took, or took before, into its list.
  async function fetchFile(name, file) {
    const answer = await fetchAnswer(`file?${new URLSearchParams({name})}`, file ? {method: "POST", body: file} : {});
    if (!answer) return undefined;
    const list = answer.kind === "gpu" ? given.gpus : given.models;
    if (!list.some((one) => one.name === answer.name)) list.unshift(answer);
    return answer;
  }

  // What the model cannot be trained with is replaced; a captured step begins with the precision that it has.
  function suitModel(precision = model().precision || state.precision) {
    if (!model().frameworks.includes(state.framework)) state.framework = model().frameworks[0];
    state.precision = precision;
  }

  async function take(file) {
    message.hidden = true;
    notes.hidden = true;
    if (file.size > given.most_bytes)
      return refuse(`${file.name}: ${Math.round(file.size / 2 ** 20)} MiB; expected at most ${given.most_bytes / 2 ** 20} MiB`);
    status.textContent = `reading ${file.name} ...`;
    const taken = await fetchFile(file.name, file);
    status.textContent = "";
    if (!taken) return;
    state[taken.kind] = taken.name;
    if (taken.kind === "model") suitModel();
    notes.textContent = taken.notes.join(" ");
    notes.hidden = taken.notes.length === 0;
    refresh();
    ask();
  }

  // A file can be dropped anywhere on the page, or chosen.
  function fileInput() {
    const input = element("input", {id: "file", type: "file", accept: ".yaml,.json,.gz,.onnx,.prototxt,.txt,.xml,.csv"});
    input.addEventListener("change", () => input.files.length && take(input.files[0]));
    document.addEventListener("dragover", (event) => {
      event.preventDefault();
      document.body.classList.add("dropping");
    });
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) document.body.classList.remove("dropping");
    });
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      document.body.classList.remove("dropping");
      if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
    });
    return element("label", {htmlFor: "file", title: "YAML, a captured step, config.json, ONNX, deviceQuery, nvidia-smi -q: at most 128 MiB, kept until tbd-sim serve ends"},
                   element("span", {textContent: "your model or GPU: drop a file"}), input);
  }

  // The address of the page says what it shows: it can be kept, or sent to a colleague.
  async function readAddress() {
    const asked = new URLSearchParams(location.search);
    for (const key of ["model", "gpu"]) {
      const wanted = asked.get(key) || "";
      if (wanted.startsWith("dropped/") && !await fetchFile(wanted)) linked = false;
    }
    for (const key of ["model", "framework", "gpu", "precision"]) if (asked.has(key)) state[key] = asked.get(key);
    if (!model()) state.model = given.start.model;
    if (!gpu()) state.gpu = given.start.gpu;
    suitModel(asked.get("precision") || undefined);
    if (!given.precisions.includes(state.precision)) state.precision = given.start.precision;
    const nearest = (key, value) => {
      const values = SLIDERS.find((slider) => slider.key === key).values;
      if (value > 0) state[key] = values.reduce((best, one) => (Math.abs(one - value) < Math.abs(best - value) ? one : best));
    };
    for (const key of ["batch", "gpus", "machines"]) nearest(key, Number(asked.get(key)));
    nearest("network", parseFloat(asked.get("network")));
    for (const change of asked.getAll("set")) {
      const [name, value] = change.split("=");
      if (name === "gpu.memory_bandwidth") nearest("bandwidth", parseFloat(value) / gpu().bandwidth);
      if (name === "gpu.sm_count") nearest("sms", parseFloat(value) / gpu().sms);
    }
  }

  function copyLink() {
    const button = element("button", {type: "button", textContent: "copy link", id: "link"});
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(location.href);
        status.textContent = "copied";
      } catch (refused) {  // browsers let pages of other machines copy nothing
        status.textContent = "the link is the address of this page";
      }
    });
    return button;
  }

  function build() {
    const button = element("button", {type: "button", textContent: "hardware as sold", id: "reset"});
    button.addEventListener("click", reset);
    const layouts = element("p", {}, element("a", {href: "layouts", textContent: "layouts on a cluster"}));
    const controls = [fileInput(), ...LISTS.map(optionsOf), ...SLIDERS.map(rangeOf), element("p", {}, button, copyLink()),
                      element("p", {}, status), layouts];
    layOut(controls, {above: [notes], below: [kernelTimes]});
  }

  build();
  Promise.all([readAddress(), window.tbdReport.ready]).then(() => {
    refresh();
    if (linked) ask();
  });
})();
