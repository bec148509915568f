// The controls of `tbd-sim serve`: lists and sliders that ask the server what becomes of the prediction. What
// there is to choose from stands in the page as JSON; the charts are page.js's.
"use strict";
(() => {
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

  function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  const tiles = element("div", {className: "tiles"});
  const message = element("p", {className: "message", role: "alert", hidden: true});
  const notes = element("p", {className: "notes", id: "file-notes", hidden: true});
  const command = element("code");
  const kernelTimes = element("p", {className: "notes"});
  const status = element("span", {className: "status"});
  const inputs = {};
  let linked = true;  // the address names a model that is there

  function listOf(list) {
    const input = element("select", {id: list.key});
    inputs[list.key] = {input, refresh() {
      input.replaceChildren(...list.options().map(([value, text]) => new Option(text, value)));
      input.value = state[list.key];
    }};
    input.addEventListener("change", () => {
      state[list.key] = input.value;
      if (list.key === "model") suitModel();
      refresh();
      ask();
    });
    return element("label", {htmlFor: list.key}, element("span", {textContent: list.label}), input);
  }

  function sliderOf(slider) {
    const input = element("input", {id: slider.key, type: "range", min: 0, max: slider.values.length - 1, step: 1});
    const output = element("output", {htmlFor: slider.key});
    inputs[slider.key] = {input, refresh() {
      input.value = slider.values.indexOf(state[slider.key]);
      output.textContent = slider.text(state[slider.key]);
      input.setAttribute("aria-valuetext", output.textContent);
      if (slider.key === "network") input.disabled = state.machines === 1;
    }};
    input.addEventListener("input", () => {
      state[slider.key] = slider.values[Number(input.value)];
      refresh();
      ask();
    });
    return element("label", {htmlFor: slider.key}, element("span", {textContent: slider.label}), output, input);
  }

  const refresh = () => Object.values(inputs).forEach((one) => one.refresh());

  function reset() {
    Object.assign(state, {bandwidth: 1, sms: 1, gpus: 1, machines: 1});
    refresh();
    ask();
  }

  // Three significant digits, whole numbers as they are: "90.04" -> "90.0", "128.4" -> "128".
  const short = (number) => {
    if (!number.includes(".")) return number;
    return Number(number) < 1 ? Number(number).toPrecision(3) : Number(number).toFixed(Math.max(0, 3 - number.indexOf(".")));
  };

  function showTiles(list) {
    tiles.replaceChildren(...list.map((tile) => {
      const [number, ...unit] = tile.text.split(" ");
      const box = element("div", {className: tile.wrong ? "tile wrong" : "tile"}, element("span", {className: "name", textContent: NAMES[tile.name] || tile.name}),
        element("span", {className: "number", title: tile.text}, short(number), element("small", {textContent: ` ${unit.join(" ")}`})),
        element("span", {className: "note", textContent: [tile.change, tile.note].filter(Boolean).join("; ")}));
      box.dataset.metric = tile.name;
      return box;
    }));
  }

  async function fetchReport(asked) {
    try {
      const reply = await fetch(`report?${asked}`);
      return {ok: reply.ok, ...await reply.json()};
    } catch (failure) {
      return {ok: false, error: "tbd-sim does not answer: was it ended?"};
    }
  }

  async function once(kernels) {
    const asked = query();
    if (kernels) asked.set("kernels", "1");
    const began = performance.now();
    const answer = await fetchReport(asked);
    message.hidden = answer.ok;
    document.body.classList.toggle("refused", !answer.ok);
    if (!answer.ok) {
      message.textContent = answer.error;
      return;
    }
    showTiles(answer.tiles);
    document.querySelector("h1").textContent = answer.title;
    command.textContent = answer.command || "has no word for several GPUs of changed hardware";
    kernelTimes.textContent = `Kernel times: ${answer.kernel_times}. Everything is predicted, nothing measured.`;
    const took = performance.now() - began;
    window.tbdReport.show(answer.html, answer.charts);
    if (kernels) return;
    status.textContent = `answered in ${Math.round(took)} ms`;
    status.dataset.ms = took;
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

  function refuse(why) {
    message.textContent = why;
    message.hidden = false;
  }

  // Puts a model that the server took, or took before, into the list.
  async function fetchModel(name, file) {
    try {
      const reply = await fetch(`model?${new URLSearchParams({name})}`, file ? {method: "POST", body: file} : {});
      const answer = await reply.json();
      if (!reply.ok) return refuse(answer.error);
      if (!given.models.some((one) => one.name === answer.name)) given.models.unshift(answer);
      return answer;
    } catch (failure) {
      return refuse("tbd-sim does not answer: was it ended?");
    }
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
    const taken = await fetchModel(file.name, file);
    status.textContent = "";
    if (!taken) return;
    state.model = taken.name;
    suitModel();
    notes.textContent = taken.notes.join(" ");
    notes.hidden = taken.notes.length === 0;
    refresh();
    ask();
  }

  // A file can be dropped anywhere on the page, or chosen.
  function fileInput() {
    const input = element("input", {id: "file", type: "file", accept: ".yaml,.json,.gz,.onnx,.prototxt,.txt"});
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
    return element("label", {htmlFor: "file", title: "YAML, a captured step, config.json, ONNX: at most 128 MiB, kept until tbd-sim serve ends"},
                   element("span", {textContent: "your model: drop a file"}), input);
  }

  // The address of the page says what it shows: it can be kept, or sent to a colleague.
  async function readAddress() {
    const asked = new URLSearchParams(location.search);
    const wanted = asked.get("model") || "";
    if (wanted.startsWith("dropped/") && !await fetchModel(wanted)) linked = false;
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

  function build() {
    document.body.classList.add("live");
    const button = element("button", {type: "button", textContent: "hardware as sold", id: "reset"});
    button.addEventListener("click", reset);
    const link = element("button", {type: "button", textContent: "copy link", id: "link"});
    link.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(location.href);
        status.textContent = "copied";
      } catch (refused) {  // browsers let pages of other machines copy nothing
        status.textContent = "the link is the address of this page";
      }
    });
    const form = element("form", {className: "controls"}, fileInput(), ...LISTS.map(listOf), ...SLIDERS.map(sliderOf),
                         element("p", {}, button, link), element("p", {}, status));
    form.addEventListener("submit", (event) => event.preventDefault());
    const main = document.querySelector("main");
    const desk = element("div", {className: "desk"});
    main.before(tiles, message, notes, desk);
    desk.append(form, main);
    main.after(element("footer", {}, element("p", {className: "notes", textContent: "The same on the command line"}),
                       element("p", {}, command), kernelTimes,
                       element("p", {}, element("a", {href: "layouts", textContent: "layouts on a cluster"}))));
  }

  build();
  Promise.all([readAddress(), window.tbdReport.ready]).then(() => {
    refresh();
    if (linked) ask();
  });
})();
