// What a report does by itself: draws its pictures, sorts its tables, opens where a number comes from. No request is made.
(() => {
  "use strict";

  // --- pictures: their colours are names of the style sheet's, so they follow a change of theme and the printer ---
  // A picture is as wide as its place: said to Vega itself, for Vega-Lite warns of bars that have a height each.
  const fit = (vega) => ({ ...vega, autosize: { type: "fit-x", contains: "padding" } });
  const options = { ast: true, actions: false, renderer: "svg", defaultStyle: false, patch: fit, tooltip: { disableDefaultStyle: true } };
  const NARROW = 480; // pixels, as in the specifications
  const beside = (width) => ({ left: 4, top: 8, right: width < NARROW ? 92 : 116, bottom: 4 }); // for figures behind bars

  const isBehind = (layer) => layer.mark?.type === "text" && layer.mark.align === "left" && layer.mark.dx && !layer.mark.dy;
  const isBanded = (layer) => layer.encoding?.y?.type === "nominal";

  // On a phone a name and its figure stand on a line above their bar, and the bar has the whole width.
  function onPhone(spec, width) {
    const layers = spec.layer ?? [];
    const written = layers.find((each) => isBehind(each) && isBanded(each));
    if (width >= NARROW || !written || layers.some((each) => each.encoding?.yOffset)) return spec;
    const figure = written.encoding.text.field;
    const longest = Math.max(0, ...spec.data.values.map((row) => String(row[figure] ?? "").length));
    const named = { labelAlign: "left", labelPadding: 0, labelOffset: -9, labelLimit: Math.max(110, width - 7 * longest - 16), zindex: 1 };
    const moved = layers.map((each) => {
      if (!isBanded(each)) return each;
      const { mark, encoding } = each;
      const y = { ...encoding.y, axis: { ...encoding.y.axis, ...named } };
      if (mark.type === "bar") return { ...each, mark: { ...mark, yOffset: 9, height: { band: 0.36 } }, encoding: { ...encoding, y } };
      if (isBehind(each)) return { ...each, mark: { ...mark, align: "right", dx: 0, dy: -9 }, encoding: { ...encoding, y, x: { value: "width" } } };
      return { ...each, encoding: { ...encoding, y } };
    });
    return { ...spec, height: 1.8 * spec.height, layer: moved };
  }

  function fitted(given, width) {
    const spec = onPhone(given, width);
    const written = (spec.layer ?? []).some(isBehind);
    return { padding: written ? beside(width) : 4, ...spec, width, autosize: "pad" };
  }

  async function drawOne(figure) {
    const place = figure.querySelector(".draw");
    const data = figure.querySelector('script[type="application/json"]');
    if (!place || !data || figure.dataset.drawn) return;
    figure.dataset.drawn = "yes";
    try {
      const spec = JSON.parse(data.textContent);
      const config = document.querySelector("script.chart-config");
      const own = { ...options, config: config ? JSON.parse(config.textContent) : {} };
      const drawn = await window.vegaEmbed(place, fitted(spec, place.clientWidth), own);
      new ResizeObserver(() => drawn.view.width(place.clientWidth).runAsync()).observe(place);
    } catch (problem) {
      figure.dataset.drawn = "failed";
      const said = document.createElement("p");
      said.className = "failed";
      said.textContent = figure.querySelector(".draw").getAttribute("aria-label") || "";
      place.replaceChildren(said);
      console.error(`the picture ${figure.dataset.name} could not be drawn: ${problem}`);
    }
  }

  function draw(root = document) {
    if (!window.vegaEmbed) return Promise.resolve([]);
    return Promise.all([...root.querySelectorAll("figure.chart")].map(drawOne));
  }

  // --- sorting: by number with its unit where most cells have one, else by words ---
  const scales = {
    K: 1e3, M: 1e6, B: 1e9, G: 1e9, T: 1e12, P: 1e15, E: 1e18, Z: 1e21, Y: 1e24,
    Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3, Ti: 1024 ** 4, Pi: 1024 ** 5,
  };
  const times = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, days: 86400, d: 86400 };

  function valueOf(text) {
    const found = /^[^\d+\-−]*([+\-−]?\$?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([^\s\d]*)/i.exec(text.trim());
    if (!found) return null;
    const number = Number(found[1].replace(/[,$]/g, "").replace("−", "-"));
    if (Number.isNaN(number)) return null;
    const unit = found[2];
    if (unit in times) return number * times[unit];
    const prefix = /^(Ki|Mi|Gi|Ti|Pi|[KMGTPEZY])(?:B|FLOP|W|iB|$)/.exec(unit);
    return number * (prefix ? scales[prefix[1]] : unit === "B" && text.includes(" B") ? 1e9 : 1);
  }

  function sort(button) {
    const head = button.closest("th");
    const table = button.closest("table");
    const place = [...head.parentNode.children].indexOf(head);
    const body = table.tBodies[0];
    const down = head.getAttribute("aria-sort") === "ascending" ||
      (!head.hasAttribute("aria-sort") && head.classList.contains("n"));
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows];
    const fixed = rows.filter((row) => row.classList.contains("total"));
    const free = rows.filter((row) => !row.classList.contains("total"));
    const sized = free.some((row) => / (?:[KMGTP]i)?B$/.test(cellText(row, place).trim()) && /(?:[KMGTP]i)B$/.test(cellText(row, place)));
    const keys = new Map(free.map((row) => [row, keyOf(cellText(row, place), head.classList.contains("n"), sized)]));
    free.sort((a, b) => compare(keys.get(a), keys.get(b), down));
    body.append(...free, ...fixed);
  }

  const cellText = (row, place) => (row.cells[place] ? row.cells[place].textContent : "");

  function keyOf(text, numeric, sized) {
    const number = numeric ? valueOf(sized ? text.replace(/ B$/, "") : text) : null;
    return { number, text };
  }

  function compare(a, b, down) {
    if (a.number !== null && b.number !== null) return down ? b.number - a.number : a.number - b.number;
    if ((a.number === null) !== (b.number === null)) return a.number === null ? 1 : -1; // what has no number comes last
    const order = a.text.localeCompare(b.text, undefined, { numeric: true });
    return down ? -order : order;
  }

  // --- where a number comes from: the note lies in the file ---
  const notes = new Map();

  function gather() {
    for (const each of document.querySelectorAll("template[data-why]")) notes.set(each.dataset.why, each);
  }

  function why(button) {
    const key = [button.dataset.block, button.dataset.label, button.dataset.column].join("|");
    const note = notes.get(key);
    if (!note) return; // on the page its own script asks for it
    let dialog = document.querySelector("dialog.note");
    if (!dialog) {
      dialog = document.createElement("dialog");
      dialog.className = "note";
      document.body.append(dialog);
    }
    const said = note.dataset.same ? document.getElementById(note.dataset.same) : note;
    dialog.replaceChildren(said.content.cloneNode(true));
    dialog.showModal();
  }

  // --- themes, and the JSON that lies inside ---
  function theme(button) {
    const dark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === "dark"
      : window.matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    button.setAttribute("aria-pressed", String(!dark));
  }

  function save(button) {
    const text = document.getElementById("suanli-result").textContent;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = button.dataset.save;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  function unfold(button) {
    const open = button.getAttribute("aria-pressed") !== "true";
    for (const each of button.closest(".block").querySelectorAll("details")) each.open = open;
    button.setAttribute("aria-pressed", String(open));
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) {
      if (event.target.matches && event.target.matches("dialog.note")) event.target.close();
      return;
    }
    if (button.classList.contains("sort")) sort(button);
    else if (button.classList.contains("why")) why(button);
    else if (button.classList.contains("theme")) theme(button);
    else if (button.classList.contains("unfold")) unfold(button);
    else if (button.dataset.save) save(button);
    else if (button.classList.contains("close") && button.closest("dialog.note")) button.closest("dialog").close();
  });

  function begin() {
    gather();
    draw();
  }

  window.suanli = { draw, gather };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
