// The page of layouts of `tbd-sim serve`: lists and sliders that ask the server what becomes of a job on a cluster.
// What there is to choose from stands in the page as JSON; the controls are controls.js's, the charts page.js's.
"use strict";
(() => {
  const {element, listOf, sliderOf, showReport, showTook, layOut, status} = window.tbdControls;
  const given = JSON.parse(document.getElementById("controls").textContent);
  const LAYOUT = ["tp", "pp", "vp", "cp", "ep", "zero", "shard", "micro_batch", "sequence_parallel", "recompute", "cp_exchange"];
  const NAMES = {step_time: "step", tokens_per_second: "throughput", mfu: "MFU", exposed_share: "exposed communication",
                 bubble_share: "bubble", memory: "memory of the fullest GPU", rent: "rent"};
  const state = {...given.start};  // without a layout the server searches the best one

  const inputs = {};  // key -> a function that shows its value

  // A layout is sent whole or not at all; the network where it is not the machine's own.
  function query(searched) {
    const asked = new URLSearchParams();
    for (const [key, value] of Object.entries(state)) {
      if (LAYOUT.includes(key) && searched) continue;
      if (key === "network") {
        if (value > 0) asked.set(key, `${value} Gbit/s`);
      } else {
        asked.set(key, value);
      }
    }
    return asked;
  }

  function changed(key, value) {
    state[key] = value;
    refresh();
    ask(false);
  }

  function optionsOf(list) {
    const {input, label} = listOf(list, (value) => changed(list.key, value));
    input.append(...list.options.map((name) => new Option(name, name)));
    inputs[list.key] = () => { input.value = state[list.key] ?? list.options[0]; };
    return label;
  }

  function rangeOf(slider) {
    const {show, label} = sliderOf(slider, (value) => changed(slider.key, value));
    // A searched layout may lie between the steps of the slider: its own value is shown.
    const nearest = (value) => slider.values.reduce((best, one, i) =>
      (Math.abs(one - value) < Math.abs(slider.values[best] - value) ? i : best), 0);
    inputs[slider.key] = () => {
      const value = state[slider.key] ?? slider.values[0];
      const none = {network: "the machine's own", shard: "all replicas"}[slider.key];
      show(nearest(value), value === 0 && none ? none : `${value} ${slider.unit}`.trim());
    };
    return label;
  }

  const refresh = () => Object.values(inputs).forEach((show) => show());

  async function once(searched) {
    const answer = await showReport(`layout?${query(searched)}`, NAMES);
    if (!answer) return;
    if (searched) {
      Object.assign(state, answer.layout);
      refresh();
    }
    showTook(answer.took);
  }

  // One question at a time; what changed meanwhile is the next one.
  let busy = false;
  let next = null;
  async function ask(searched) {
    delete document.documentElement.dataset.atRest;
    next = {searched};
    if (busy) return;
    busy = true;
    while (next) {
      const now = next;
      next = null;
      await once(now.searched);
    }
    busy = false;
    history.replaceState(null, "", `?${query(false)}`);
    document.documentElement.dataset.atRest = "true";
  }

  // The address of the page says what it shows: it can be kept, or sent to a colleague. Returns whether it has a layout.
  function readAddress() {
    const asked = new URLSearchParams(location.search);
    const numbers = new Set(given.sliders.map((slider) => slider.key));
    for (const [key, value] of asked) state[key] = numbers.has(key) ? parseFloat(value) : value;
    return LAYOUT.some((key) => asked.has(key));
  }

  function build() {
    const button = element("button", {type: "button", textContent: "the best layout", id: "best"});
    button.addEventListener("click", () => ask(true));
    layOut([...given.lists.map(optionsOf), ...given.sliders.map(rangeOf), element("p", {}, button, status),
            element("p", {}, element("a", {href: "./", textContent: "one GPU, any model"}))], {});
  }

  build();
  const known = readAddress();
  refresh();
  window.tbdReport.ready.then(() => ask(!known));
})();
