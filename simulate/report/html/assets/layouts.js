// The page of layouts of `tbd-sim serve`: lists and sliders that ask the server what becomes of a job on a cluster.
// What there is to choose from stands in the page as JSON; the charts are page.js's.
"use strict";
(() => {
  const given = JSON.parse(document.getElementById("controls").textContent);
  const LAYOUT = ["tp", "pp", "vp", "cp", "ep", "zero", "shard", "micro_batch", "sequence_parallel", "recompute", "cp_exchange"];
  const NAMES = {step_time: "step", tokens_per_second: "throughput", mfu: "MFU", exposed_share: "exposed communication",
                 bubble_share: "bubble", memory: "memory of the fullest GPU", rent: "rent"};
  const state = {...given.start};  // without a layout the server searches the best one

  function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  const tiles = element("div", {className: "tiles"});
  const message = element("p", {className: "message", role: "alert", hidden: true});
  const command = element("code");
  const status = element("span", {className: "status"});
  const inputs = {};

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

  function listOf(list) {
    const input = element("select", {id: list.key});
    input.append(...list.options.map((name) => new Option(name, name)));
    inputs[list.key] = () => { input.value = state[list.key] ?? list.options[0]; };
    input.addEventListener("change", () => changed(list.key, input.value));
    return element("label", {htmlFor: list.key}, element("span", {textContent: list.label}), input);
  }

  function sliderOf(slider) {
    const input = element("input", {id: slider.key, type: "range", min: 0, max: slider.values.length - 1, step: 1});
    const output = element("output", {htmlFor: slider.key});
    // A searched layout may lie between the steps of the slider: its own value is shown.
    const nearest = (value) => slider.values.reduce((best, one, i) =>
      (Math.abs(one - value) < Math.abs(slider.values[best] - value) ? i : best), 0);
    inputs[slider.key] = () => {
      const value = state[slider.key] ?? slider.values[0];
      input.value = nearest(value);
      const none = {network: "the machine's own", shard: "all replicas"}[slider.key];
      output.textContent = value === 0 && none ? none : `${value} ${slider.unit}`.trim();
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.addEventListener("input", () => changed(slider.key, slider.values[Number(input.value)]));
    return element("label", {htmlFor: slider.key}, element("span", {textContent: slider.label}), output, input);
  }

  const refresh = () => Object.values(inputs).forEach((show) => show());

  function showTiles(list) {
    tiles.replaceChildren(...list.map((tile) => {
      const [number, ...unit] = tile.text.split(" ");
      const box = element("div", {className: tile.wrong ? "tile wrong" : "tile"},
        element("span", {className: "name", textContent: NAMES[tile.name] || tile.name}),
        element("span", {className: "number", title: tile.text}, number, element("small", {textContent: ` ${unit.join(" ")}`})),
        element("span", {className: "note", textContent: tile.note}));
      box.dataset.metric = tile.name;
      return box;
    }));
  }

  async function fetchReport(asked) {
    try {
      const reply = await fetch(`layout?${asked}`);
      return {ok: reply.ok, ...await reply.json()};
    } catch (failure) {
      return {ok: false, error: "tbd-sim does not answer: was it ended?"};
    }
  }

  async function once(searched) {
    const began = performance.now();
    const answer = await fetchReport(query(searched));
    message.hidden = answer.ok;
    document.body.classList.toggle("refused", !answer.ok);
    if (!answer.ok) {
      message.textContent = answer.error;
      return;
    }
    if (searched) {
      Object.assign(state, answer.layout);
      refresh();
    }
    showTiles(answer.tiles);
    document.querySelector("h1").textContent = answer.title;
    command.textContent = answer.command;
    const took = performance.now() - began;
    window.tbdReport.show(answer.html, answer.charts);
    status.textContent = `answered in ${Math.round(took)} ms`;
    status.dataset.ms = took;
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
    document.body.classList.add("live");
    const button = element("button", {type: "button", textContent: "the best layout", id: "best"});
    button.addEventListener("click", () => ask(true));
    const form = element("form", {className: "controls"}, ...given.lists.map(listOf), ...given.sliders.map(sliderOf),
                         element("p", {}, button, status), element("p", {}, element("a", {href: "./", textContent: "one GPU, any model"})));
    form.addEventListener("submit", (event) => event.preventDefault());
    const main = document.querySelector("main");
    const desk = element("div", {className: "desk"});
    main.before(tiles, message, desk);
    desk.append(form, main);
    main.after(element("footer", {}, element("p", {className: "notes", textContent: "The same on the command line"}),
                       element("p", {}, command)));
  }

  build();
  const known = readAddress();
  refresh();
  window.tbdReport.ready.then(() => ask(!known));
})();
