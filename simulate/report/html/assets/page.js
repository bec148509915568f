// Draws the charts of a page with Plotly and brings its tables and lists to life. The charts are the structs of
// page.h as JSON; each is drawn when it first comes into view.
"use strict";
(() => {
  // Apart for most colour-blind eyes, and visible on white as on near-black.
  const PALETTE = ["#3b82c4", "#e08a1e", "#2a9d6f", "#c8553d", "#9b6bc3", "#3fa9bd", "#a8922b", "#d0679d",
                   "#7c8fa3", "#8a6a4f", "#6f9a3d", "#5c62c9", "#b04a86"];
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "cross", "star", "hexagon"];
  const PREFIXED = new Set(["flop/s", "flop/B", "B/s", "B", "s", "flop"]);  // units that take k, M, G, ...
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const root = document.documentElement;
  const drawn = new Set();
  const shownNow = new Set();  // figures in view, or near it
  const stale = new Set();     // drawn as they were before show()

  // Pixels there are for a chart: on paper those of A4 and of half of it.
  const PAPER = {wide: 690, half: 335};
  let printing = false;
  function widthOf(figure) {
    if (!printing) return figure.clientWidth;
    return figure.classList.contains("wide") ? PAPER.wide : PAPER.half;
  }

  const chartOf = (figure) => figure.chart || charts[Number(figure.dataset.chart)];
  const colour = (series) => PALETTE[series.colour % PALETTE.length];
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const narrow = () => window.matchMedia("(max-width: 40rem)").matches;
  const words = (list) => list && list[1].map((index) => list[0][index]);
  const nameOf = (axis) => axis.title.replace(/, [^,]*$/, "");
  const unitOf = (axis) => (axis.title.match(/, ([^,]*)$/) || ["", ""])[1].replace(/^bytes.*/, "B");

  function numberText(value, axis) {
    const unit = unitOf(axis);
    const size = Math.abs(value);
    const digits = (number) => Number(number.toPrecision(4)).toLocaleString("en", {maximumFractionDigits: 6});
    if (!PREFIXED.has(unit) || size === 0) return `${digits(value)} ${unit}`.trim();
    const least = unit === "flop/B" ? 0 : -4;  // 0.1 flop/B, not 100 mflop/B
    const power = Math.max(least, Math.min(5, Math.floor(Math.log10(size) / 3)));
    return `${digits(value / 1000 ** power)} ${["p", "n", "µ", "m", "", "k", "M", "G", "T", "P"][power + 4]}${unit}`;
  }

  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

  // What is said of point i: its own words, then its numbers.
  function hoverText(chart, series, i) {
    const lines = [`<b>${escaped(series.name)}</b>`];
    if (series.categories) lines.push(escaped(words(series.categories)[i]));
    if (series.hover) lines.push(escaped(words(series.hover)[i]));
    if (series.start) lines.push(`starts at ${numberText(series.start[i], chart.x)}`);
    if (series.x) lines.push(`${nameOf(chart.x)}: ${numberText(series.x[i], chart.x)}`);
    if (series.y) {
      const interval = series.low ? ` (${numberText(series.low[i], chart.y)} to ${numberText(series.high[i], chart.y)})` : "";
      lines.push(`${nameOf(chart.y)}: ${numberText(series.y[i], chart.y)}${interval}`);
    }
    return lines.join("<br>");
  }

  const hoverTexts = (chart, series) => (series.x || series.y).map((_, i) => hoverText(chart, series, i));

  function area(series) {
    return {type: "scatter", mode: "lines", x: [...series.x, ...series.x.slice().reverse()],
            y: [...series.high, ...series.low.slice().reverse()], fill: "toself", fillcolor: colour(series),
            opacity: 0.18, line: {width: 0}, hoverinfo: "skip", showlegend: false, legendgroup: series.name};
  }

  const MARKS = {
    line: (chart, series) => ({
      type: "scatter", mode: series.x.length > 30 || series.dashed ? "lines" : "lines+markers", x: series.x, y: series.y,
      cliponaxis: false,  // whole marks at 0 and 100 %
      line: {color: colour(series), width: 2, dash: series.dashed ? "dash" : "solid"},
      marker: {symbol: SYMBOLS[series.colour % SYMBOLS.length], size: 7, color: colour(series)}}),
    point: (chart, series) => {
      return {
        type: "scatter", mode: "markers", x: series.x, y: series.y,
        marker: {color: colour(series), opacity: 0.75, symbol: SYMBOLS[series.colour % SYMBOLS.length],
                 size: series.size ? series.size.map((size) => 5 + 22 * Math.sqrt(size / chart.largest)) : 7},
        error_y: series.low && {type: "data", symmetric: false, thickness: 1, width: 0, color: colour(series),
                                array: series.high.map((high, i) => high - series.y[i]),
                                arrayminus: series.low.map((low, i) => series.y[i] - low)}};
    },
    bar: (chart, series) => ({type: "bar", orientation: "h", x: series.x, y: words(series.categories),
                              marker: {color: colour(series)}}),
    span: (chart, series) => ({type: "bar", orientation: "h", x: series.x, base: series.start,
                               y: words(series.categories), marker: {color: colour(series), line: {width: 0}}}),
    box: (chart, series) => ({type: "box", orientation: "h", x: series.x, y: words(series.categories),
                              boxpoints: "outliers", marker: {color: colour(series), size: 4}}),
  };

  function tracesOf(chart) {
    chart.largest = Math.max(...chart.series.flatMap((series) => series.size || [0]));
    return chart.series.flatMap((series) => {
      const texts = hoverTexts(chart, series);
      const trace = {...MARKS[series.mark](chart, series), name: series.name, legendgroup: series.name,
                     hoverinfo: "text", hovertext: texts, text: texts, textposition: "none"};
      if (series.mark !== "bar" && series.mark !== "span") delete trace.textposition;
      return series.mark === "line" && series.low ? [area(series), trace] : [trace];
    });
  }

  const lying = (chart) => chart.series.some((series) => series.categories);

  // 1, 2, 5, 10, ... of the range; powers of ten only where that would be many.
  function decadeTicks(values) {
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const steps = most / least > 300 ? [1] : most / least > 20 ? [1, 3] : [1, 1.5, 2, 3, 5, 7];
    const ticks = [];
    for (let power = Math.floor(Math.log10(least)); power <= Math.log10(most); ++power)
      ticks.push(...steps.map((step) => Number((step * 10 ** power).toPrecision(2))));
    return ticks;
  }

  // The batches themselves, every other one where they are many.
  function batchTicks(values, figure) {
    const batches = [...new Set(values)].sort((a, b) => a - b);
    const skip = Math.ceil((batches.length * 42) / widthOf(figure));
    return batches.filter((_, i) => i % skip === 0);
  }

  function axisLayout(axis, values, figure, length) {
    const layout = {title: {text: linesOf(axis.title, Math.floor(length / TITLE)).join("<br>"), standoff: 8}, nticks: Math.max(3, Math.floor(length / 48)), type: axis.log ? "log" : "linear", automargin: true,
                    gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), tickangle: 0};
    if (axis.log && values.length) {
      layout.tickvals = axis.title.startsWith("batch") ? batchTicks(values, figure) : decadeTicks(values);
      layout.ticktext = layout.tickvals.map((value) => numberText(value, axis).replace(unitOf(axis), "").trim());
    }
    const place = (value) => (axis.log ? Math.log10(value) : value);
    if (axis.from !== undefined && axis.to !== undefined) layout.range = [place(axis.from), place(axis.to)];
    else if (!axis.log) layout.rangemode = "tozero";
    return layout;
  }

  const ROW = 18;    // pixels of a line of the legend
  const LINE = 16;   // of a line of a label or a title
  const LETTER = 7;  // of a character of a label, about
  const TITLE = 8.5;  // of one of an axis' title
  const LABELS = 0.36;  // of the width, for the labels of lying bars at most

  // Lines of up to so many characters, broken behind spaces, dots and underscores.
  function linesOf(text, most) {
    const lines = [""];
    for (const part of text.match(/[^ ._]*[ ._]|[^ ._]+$/g) || []) {
      if (lines.at(-1) && (lines.at(-1) + part).trimEnd().length > most) lines.push("");
      lines[lines.length - 1] += part;
    }
    return lines.map((line) => line.trimEnd());
  }

  const labelsOf = (chart) => [...new Set(chart.series.flatMap((series) => (series.categories ? series.categories[0] : [])))];
  const labelLines = (chart, figure) => labelsOf(chart).map((label) => linesOf(label, Math.floor((LABELS * widthOf(figure)) / LETTER)));
  const longest = (texts) => Math.max(0, ...texts.map((text) => text.length));

  // Pixels left of the plot, for labels or numbers.
  const leftOf = (chart, figure) => (lying(chart) ? LETTER * longest(labelLines(chart, figure).flat()) : 40);
  const plotWidth = (chart, figure) => Math.max(120, widthOf(figure) - 34 - leftOf(chart, figure));

  // Plotly gives every entry of a legend the same width, and all of them that of the plot.
  function legendOf(chart, figure) {
    const names = [...new Set(chart.series.map((series) => series.name))];
    const columns = Math.max(1, Math.min(names.length, Math.floor(plotWidth(chart, figure) / (44 + LETTER * longest(names)))));
    return {shown: names.length > 1, columns, height: names.length > 1 ? ROW * Math.ceil(names.length / columns) : 0};
  }

  function plotHeight(chart, figure) {
    if (chart.square) return Math.min(widthOf(figure), 640);
    if (!lying(chart)) return figure.classList.contains("wide") ? 420 : 230;
    const lines = Math.max(...labelLines(chart, figure).map((label) => label.length));
    const bars = chart.stacked || chart.series[0].mark === "span" ? 1 : new Set(chart.series.map((series) => series.name)).size;
    return 10 + labelsOf(chart).length * Math.max(chart.series[0].mark === "span" ? 40 : 19, 11 * bars, LINE * lines);
  }

  const valuesOf = (chart, keys) => chart.series.flatMap((series) => keys.flatMap((key) => series[key] || []));

  function layoutOf(chart, figure) {
    const legend = legendOf(chart, figure);
    const [width, height] = [plotWidth(chart, figure), plotHeight(chart, figure)];
    const below = 54 + LINE * (linesOf(chart.x.title, Math.floor(width / TITLE)).length - 1) + legend.height;
    const family = getComputedStyle(document.body).fontFamily;
    const layout = {
      height: 34 + height + below, margin: {l: 40, r: 14, t: printing ? 8 : 34, b: below},
      width: printing ? widthOf(figure) - 12 : undefined, autosize: !printing,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest",
      dragmode: narrow() ? false : "zoom", barmode: chart.stacked ? "stack" : "group", bargap: 0.25, boxmode: "group",
      font: {family, size: 12, color: css("--text")}, hoverlabel: {align: "left", font: {family}},
      modebar: {bgcolor: "rgba(0,0,0,0)", color: css("--quiet"), activecolor: css("--accent")},
      legend: {orientation: "h", xref: "container", x: 0.02, xanchor: "left", yref: "container", y: 0.01,
               yanchor: "bottom", traceorder: "normal", font: {size: 11}, entrywidth: 0.98 / legend.columns,
               entrywidthmode: "fraction", maxheight: 2000},
      showlegend: legend.shown,
      xaxis: axisLayout(chart.x, valuesOf(chart, ["x"]), figure, width),
      yaxis: axisLayout(chart.y, valuesOf(chart, ["y", "low", "high"]), figure, height)};
    if (lying(chart)) {
      Object.assign(layout.yaxis, {type: "category", autorange: "reversed", rangemode: "normal", tickvals: labelsOf(chart),
                                   ticktext: labelLines(chart, figure).map((lines) => lines.join("<br>"))});
    }
    if (chart.series.some((series) => series.mark === "span")) layout.barmode = "overlay";
    if (chart.square) Object.assign(layout.yaxis, {scaleanchor: "x", scaleratio: 1});
    return layout;
  }

  function draw(figure) {
    if (drawn.has(figure) || !window.Plotly) return;
    drawn.add(figure);
    const chart = chartOf(figure);
    const title = figure.querySelector("figcaption").textContent;
    const file = title.replace(/[^A-Za-z0-9]+/g, "_");
    const save = (format) => (plot) => window.Plotly.downloadImage(plot, {format, filename: file, scale: format === "png" ? 3 : 1});
    const place = document.createElement("div");
    figure.append(place);
    window.Plotly.newPlot(place, tracesOf(chart), layoutOf(chart, figure), {
      displayModeBar: narrow() ? false : "hover", displaylogo: false, responsive: true, scrollZoom: false,
      modeBarButtons: [["zoom2d", "pan2d", "resetScale2d"],
                       [{name: "svg", title: "save as SVG", icon: window.Plotly.Icons.camera, click: save("svg")},
                        {name: "png", title: "save as PNG", icon: window.Plotly.Icons.disk, click: save("png")}]]});
    figure.dataset.drawn = "true";
  }

  const figures = () => [...document.querySelectorAll("figure.chart")];
  const shown = () => figures().filter((figure) => !figure.closest("[hidden]"));

  function redrawOne(figure) {
    stale.delete(figure);
    window.Plotly.react(figure.lastElementChild, tracesOf(chartOf(figure)), layoutOf(chartOf(figure), figure));
  }
  const redraw = () => drawn.forEach(redrawOne);

  const ascii = (text) => text.replace(/[^\x00-\x7f]/gu, (char) => `&#${char.codePointAt(0)};`);

  const filePart = (title) => title.toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_/, "").slice(0, 40).replace(/_$/, "");

  // "01_throughput_resnet_50": its place on the page, its section and its own title.
  function fileName(figure, number) {
    const section = figure.closest("section").querySelector("h2").textContent;
    const title = figure.querySelector("figcaption").textContent;
    return `${String(number).padStart(2, "0")}_${filePart(section)}_${filePart(title)}`;
  }

  // For docs/chart_pictures.sh, which opens "PAGE#export-svg" or "PAGE#export-png": a line for each chart, its name and
  // the picture in base64.
  async function exportCharts(format) {
    root.dataset.theme = "light";
    document.querySelectorAll(".view").forEach((view) => { view.hidden = false; });
    const lines = [];
    for (const figure of figures()) {
      draw(figure);
      const url = await window.Plotly.toImage(figure.lastElementChild, {format, scale: format === "png" ? 3 : 1});
      const data = url.slice(url.indexOf(",") + 1);
      const picture = format === "svg" ? btoa(ascii(decodeURIComponent(data))) : data;
      lines.push(`${fileName(figure, lines.length + 1)} ${picture}`);
    }
    document.querySelectorAll("script").forEach((script) => script.remove());
    document.body.innerHTML = '<pre id="exported"></pre>';
    document.getElementById("exported").textContent = lines.join("\n");
  }

  async function loadPlotly() {
    const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (char) => char.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }

  function addThemeButton() {
    const button = document.createElement("button");
    button.className = "theme";
    button.textContent = "dark / light";
    button.addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      redraw();
    });
    document.querySelector("header").append(button);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  }

  // A list over the views of each section that has several.
  function addLists() {
    for (const section of document.querySelectorAll("section")) {
      const views = [...section.querySelectorAll(".view")];
      if (views.length < 2) continue;
      const list = document.createElement("select");
      list.className = "choose";
      list.setAttribute("aria-label", section.querySelector("h2").textContent);
      views.forEach((view, i) => list.add(new Option(view.dataset.name, i)));
      const show = () => views.forEach((view, i) => { view.hidden = i !== Number(list.value); });
      list.addEventListener("change", show);
      section.insertBefore(list, views[0]);
      show();
    }
  }

  const keyOf = (cell) => (cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value));

  function sortBy(table, header) {
    const up = header.getAttribute("aria-sort") !== "ascending";
    table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows];
    const column = header.cellIndex;
    rows.sort((a, b) => {
      const [left, right] = [keyOf(a.cells[column]), keyOf(b.cells[column])];
      const order = typeof left === "number" && typeof right === "number" ? left - right : String(left).localeCompare(String(right));
      return up ? order : -order;
    });
    table.tBodies[0].append(...rows);
  }

  function addTableTools(within) {
    for (const table of within.querySelectorAll("table")) {
      table.tHead.addEventListener("click", (event) => event.target.cellIndex !== undefined && sortBy(table, event.target));
      if (table.tBodies[0].rows.length < 15) continue;
      const filter = document.createElement("input");
      filter.className = "filter";
      filter.type = "search";
      filter.placeholder = "only rows with ...";
      filter.addEventListener("input", () => {
        const wanted = filter.value.toLowerCase();
        for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      });
      table.parentElement.before(filter);
    }
  }

  // Paper is white and shows every chart, whether it was looked at or not.
  function preparePrint() {
    let before;
    window.addEventListener("beforeprint", () => {
      before = root.dataset.theme;
      root.dataset.theme = "light";
      printing = true;
      shown().forEach(draw);
      redraw();
    });
    window.addEventListener("afterprint", () => {
      printing = false;
      if (before) root.dataset.theme = before; else delete root.dataset.theme;
      redraw();
    });
  }

  const seen = new IntersectionObserver((entries) => entries.forEach(({target, isIntersecting}) => {
    if (!isIntersecting) {
      shownNow.delete(target);
      return;
    }
    shownNow.add(target);
    if (stale.has(target)) redrawOne(target); else draw(target);
  }), {rootMargin: "400px"});

  // A section in the place of one with the same heading. Charts that are drawn move to their new numbers, those
  // out of view once they are looked at. One with other charts or tables, or without charts, is new as a whole.
  function replaceSection(old, fresh, list) {
    const [before, after] = [old, fresh].map((section) => [...section.querySelectorAll("figcaption")].map((title) => title.textContent).join("\n"));
    const tables = (section) => section.querySelectorAll("tbody").length;
    if (before !== after || before === "" || tables(old) !== tables(fresh)) {
      old.querySelectorAll("figure.chart").forEach((figure) => [drawn, stale, shownNow].forEach((set) => set.delete(figure)));
      old.replaceWith(fresh);
      bringToLife(fresh, list);
      return;
    }
    delete old.dataset.stale;
    const paragraphs = (section) => [...section.querySelectorAll(":scope > p")];
    paragraphs(old).forEach((paragraph) => paragraph.remove());
    old.querySelector("h2").after(...paragraphs(fresh));
    const freshFigures = [...fresh.querySelectorAll("figure.chart")];
    old.querySelectorAll("figure.chart").forEach((figure, i) => {
      figure.chart = list[Number(freshFigures[i].dataset.chart)];
      if (drawn.has(figure)) stale.add(figure);
    });
    const freshRows = [...fresh.querySelectorAll("tbody")];
    old.querySelectorAll("tbody").forEach((body, i) => body.replaceChildren(...freshRows[i].rows));
  }

  function bringToLife(section, list) {
    section.querySelectorAll("figure.chart").forEach((figure) => {
      figure.chart = list[Number(figure.dataset.chart)];
      seen.observe(figure);
    });
    addTableTools(section);
  }

  // For live.js: what the page shows from now on. Sections that are not among these stay, and look it.
  function show(html, list) {
    const main = document.querySelector("main");
    const heading = (section) => section.querySelector("h2").textContent;
    const here = new Map([...main.querySelectorAll("section")].map((section) => [heading(section), section]));
    here.forEach((section) => { section.dataset.stale = "true"; });
    for (const fresh of [...new DOMParser().parseFromString(html, "text/html").querySelectorAll("section")]) {
      const old = here.get(heading(fresh));
      if (old) {
        replaceSection(old, fresh, list);
      } else {
        main.append(fresh);
        bringToLife(fresh, list);
      }
    }
    stale.forEach((figure) => shownNow.has(figure) && redrawOne(figure));
  }

  async function start() {
    addThemeButton();
    addLists();
    addTableTools(document);
    try {
      await loadPlotly();
    } catch (failure) {
      figures().forEach((figure) => figure.insertAdjacentHTML("beforeend", '<p class="failure">This chart needs a browser of 2023 or later.</p>'));
      return;
    }
    const wanted = location.hash.match(/^#export-(svg|png)$/);
    if (wanted) {
      await exportCharts(wanted[1]);
      return;
    }
    figures().forEach((figure) => seen.observe(figure));
    preparePrint();
    root.dataset.ready = "true";
  }
  window.tbdReport = {show, ready: start()};
})();
