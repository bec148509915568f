// What the two pages of `tbd-sim serve` share: lists, sliders, tiles, and questions to the server.
"use strict";
window.tbdControls = (() => {
  function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  const tiles = element("div", {className: "tiles"});
  const message = element("p", {className: "message", role: "alert", hidden: true});
  const command = element("code");
  const status = element("span", {className: "status"});

  // A list or slider with its label; `changed` is called with the chosen option or the slider's step.
  function listOf({key, label}, changed) {
    const input = element("select", {id: key});
    input.addEventListener("change", () => changed(input.value));
    return {input, label: element("label", {htmlFor: key}, element("span", {textContent: label}), input)};
  }
  function sliderOf({key, label, values}, changed) {
    const input = element("input", {id: key, type: "range", min: 0, max: values.length - 1, step: 1});
    const output = element("output", {htmlFor: key});
    input.addEventListener("input", () => changed(values[Number(input.value)]));
    const show = (step, text) => {
      input.value = step;
      output.textContent = text;
      input.setAttribute("aria-valuetext", text);
    };
    return {input, show, label: element("label", {htmlFor: key}, element("span", {textContent: label}), output, input)};
  }

  // Three significant digits, two below 1, whole numbers as they are: "90.04" -> "90.0", "0.9991" -> "1.0".
  function short(number) {
    if (!/^\d+\.\d+$/.test(number)) return number;
    return Number(number) < 1 ? Number(number).toPrecision(2) : Number(number).toFixed(Math.max(0, 3 - number.indexOf(".")));
  }

  function tileOf(tile, names) {
    const [number, ...unit] = tile.text.split(" ");
    const box = element("div", {className: tile.wrong ? "tile wrong" : "tile"},
      element("span", {className: "name", textContent: names[tile.name] || tile.name}),
      element("span", {className: "number", title: tile.text}, short(number), element("small", {textContent: ` ${unit.join(" ")}`})),
      element("span", {className: "note", textContent: [tile.change, tile.note].filter(Boolean).join("; ")}));
    box.dataset.metric = tile.name;
    return box;
  }

  function refuse(why) {
    message.textContent = why;
    message.hidden = false;
  }

  // The server's answer in JSON; where it refuses, or does not answer, undefined, and the page says why.
  async function fetchAnswer(url, options = {}) {
    try {
      const reply = await fetch(url, options);
      const answer = await reply.json();
      if (reply.ok) return answer;
      refuse(answer.error);
    } catch (failure) {
      refuse("tbd-sim does not answer: was it ended?");
    }
    return undefined;
  }

  // Fetches a report and shows it; `names` are those of its tiles. Returns the answer, and as `took` its milliseconds.
  async function showReport(url, names) {
    const began = performance.now();
    const answer = await fetchAnswer(url);
    document.body.classList.toggle("refused", !answer);
    if (!answer) return undefined;
    message.hidden = true;
    tiles.replaceChildren(...answer.tiles.map((tile) => tileOf(tile, names)));
    document.querySelector("h1").textContent = answer.title;
    command.textContent = answer.command;
    const took = performance.now() - began;
    window.tbdReport.show(answer.html, answer.charts);
    return {...answer, took};
  }

  function showTook(milliseconds) {
    status.textContent = `answered in ${Math.round(milliseconds)} ms`;
    status.dataset.ms = milliseconds;
  }

  // Lays the page out: tiles, message and `above` over the controls and the report, the command and `below` under them.
  function layOut(controls, {above = [], below = []}) {
    document.body.classList.add("live");
    const form = element("form", {className: "controls"}, ...controls);
    form.addEventListener("submit", (event) => event.preventDefault());
    const main = document.querySelector("main");
    const desk = element("div", {className: "desk"});
    main.before(tiles, message, ...above, desk);
    desk.append(form, main);
    main.after(element("footer", {}, element("p", {className: "notes", textContent: "The same on the command line"}),
                       element("p", {}, command), ...below));
  }

  return {element, listOf, sliderOf, refuse, fetchAnswer, showReport, showTook, layOut, message, command, status};
})();
