// Parts of the form: sliders beside numbers, lists of names to search, files to drop, axes to fix.
(() => {
  "use strict";
  const say = (name) => document.getElementById("words").dataset[name];
  const steps = 1000;

  // --- sliders: the text is what counts, the slider follows it and writes it ---
  const suffixes = { "": 1, K: 1e3, M: 1e6, B: 1e9, G: 1e9, T: 1e12, Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3 };
  const seconds = { ms: 1e-3, s: 1, min: 60, h: 3600, d: 86400 };

  function numberOf(text, unit) {
    const found = /^\s*([\d.,]+(?:e[+-]?\d+)?)\s*([a-zA-Z%]*)/i.exec(text);
    if (!found) return null;
    const value = Number(found[1].replace(/,/g, ""));
    if (Number.isNaN(value)) return null;
    if (found[2] in seconds && unit in seconds) return (value * seconds[found[2]]) / seconds[unit];
    if (unit === "%" && found[2] === "" && value <= 1) return value * 100;
    return value * (suffixes[found[2]] ?? 1);
  }

  const rounded = (value, digits) => Number(value.toPrecision(digits));

  function textOf(value, data) {
    if (data.suffix) {
      for (const [name, size] of [["T", 1e12], ["B", 1e9], ["M", 1e6], ["K", 1e3]]) {
        if (value >= size) return `${rounded(value / size, 3)}${name}`;
      }
    }
    return `${value}${data.unit}`;
  }

  function valueAt(slider) {
    const { low, high, by, step } = slider.dataset;
    const part = Number(slider.value) / Number(slider.max);
    const [from, to] = [Number(low), Number(high)];
    if (by === "double") return from * 2 ** Math.round(part * Math.log2(to / from));
    if (by === "log") return rounded(from * (to / from) ** part, 2);
    return rounded(Math.round((from + part * (to - from)) / Number(step)) * Number(step), 6);
  }

  function follow(slider, input) {
    const { low, high, by, unit } = slider.dataset;
    const [from, to] = [Number(low), Number(high)];
    const value = numberOf(input.value, unit);
    slider.classList.toggle("unset", value === null);
    const part = value === null ? 0.3 : by === "linear" ? (value - from) / (to - from) : Math.log(value / from) / Math.log(to / from);
    slider.value = String(Math.min(1, Math.max(0, part)) * Number(slider.max));
    slider.setAttribute("aria-valuetext", input.value || say("default") || "default");
  }

  function slide(slider) {
    const input = slider.parentNode.querySelector("input:not(.slider)");
    if (slider.dataset.by === "double") slider.max = String(Math.round(Math.log2(slider.dataset.high / slider.dataset.low)));
    else if (slider.dataset.by === "linear") slider.max = String(Math.round((slider.dataset.high - slider.dataset.low) / slider.dataset.step));
    else slider.max = String(steps);
    follow(slider, input);
    slider.addEventListener("input", () => {
      input.value = textOf(valueAt(slider), slider.dataset);
      slider.classList.remove("unset");
      slider.setAttribute("aria-valuetext", input.value);
    });
    input.addEventListener("input", () => follow(slider, input));
    input.addEventListener("refill", () => follow(slider, input));
  }

  // --- names: a list that is searched while typing ---
  let names = null;
  const known = () => (names ??= fetch("/page/names.json").then((answer) => answer.json()));

  function combo(input) {
    const list = document.getElementById(input.getAttribute("aria-controls"));
    let shown = [];
    let at = -1;

    function close() {
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
      input.removeAttribute("aria-activedescendant");
    }

    function mark(place) {
      at = place;
      [...list.children].forEach((each, index) => each.setAttribute("aria-selected", String(index === at)));
      const chosen = list.children[at];
      if (!chosen || !shown.length) return input.removeAttribute("aria-activedescendant");
      input.setAttribute("aria-activedescendant", chosen.id);
      chosen.scrollIntoView({ block: "nearest" });
    }

    async function open(all) {
      const every = (await known())[input.dataset.names];
      if (document.activeElement !== input) return;
      const parts = all ? [] : input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = ([id, title]) => parts.every((part) => `${id} ${title}`.toLowerCase().includes(part));
      const begins = ([id]) => (parts.length && id.startsWith(parts[0]) ? 0 : 1);
      shown = every.filter(fits).sort((a, b) => begins(a) - begins(b)).slice(0, 100);
      list.replaceChildren(...(shown.length ? shown.map(option) : [nothing()]));
      list.hidden = false;
      input.setAttribute("aria-expanded", "true");
      mark(all ? shown.findIndex(([id]) => id === input.value) : -1);
    }

    function option([id, title, size], index) {
      const item = document.createElement("li");
      Object.assign(item, { id: `${list.id}-${index}` });
      item.setAttribute("role", "option");
      item.dataset.value = id;
      const [name, more] = [document.createElement("span"), document.createElement("span")];
      name.textContent = id;
      item.title = title;
      more.className = "size";
      more.textContent = size;
      item.append(name, more);
      return item;
    }

    function nothing() {
      const item = document.createElement("li");
      item.className = "none";
      item.setAttribute("role", "option");
      item.setAttribute("aria-disabled", "true");
      item.textContent = say("nothing");
      return item;
    }

    function take(id) {
      input.value = id;
      close();
      input.dispatchEvent(new Event("change", { bubbles: true }));
    }

    input.addEventListener("input", () => open(false));
    input.addEventListener("click", () => (list.hidden ? open(true) : close()));
    input.addEventListener("blur", () => setTimeout(close, 150));
    input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        if (list.hidden) return void open(true);
        mark((at + (event.key === "ArrowDown" ? 1 : -1) + shown.length) % shown.length);
      } else if (event.key === "Enter" && !list.hidden && at >= 0) {
        event.preventDefault();
        take(shown[at][0]);
      } else if (event.key === "Escape" && !list.hidden) {
        event.preventDefault();
        close();
      }
    });
    list.addEventListener("mousedown", (event) => {
      event.preventDefault();
      const item = event.target.closest("li[data-value]");
      if (item) take(item.dataset.value);
    });
  }

  // --- files: sent at once, named in the address by what the server calls them ---
  const remembered = {
    get: (token) => sessionStorage.getItem(`file ${token}`),
    set: (token, name) => sessionStorage.setItem(`file ${token}`, name),
  };

  function row(token, name) {
    const item = document.createElement("li");
    item.dataset.token = token;
    const [shown, field, gone] = ["span", "input", "button"].map((tag) => document.createElement(tag));
    shown.className = "name";
    shown.textContent = name || remembered.get(token) || token;
    Object.assign(field, { type: "hidden", value: token });
    Object.assign(gone, { type: "button", textContent: "×" });
    gone.setAttribute("aria-label", `${say("remove")} ${shown.textContent}`);
    item.append(shown, field, gone);
    return item;
  }

  function files(box) {
    const field = box.closest(".field");
    const name = field.dataset.field;
    const chooser = box.querySelector(".chooser");
    const list = box.querySelector(".files");
    const changed = () => box.dispatchEvent(new Event("change", { bubbles: true }));
    const add = (token, title) => {
      const item = row(token, title);
      item.querySelector("input").name = name;
      if (!chooser.multiple || token === "example") list.replaceChildren(item);
      else {
        for (const each of list.querySelectorAll('[data-token="example"]')) each.remove();
        list.append(item);
      }
    };
    field.refill = (tokens) => {
      list.replaceChildren();
      tokens.forEach((token) => add(token));
    };
    field.refill([...list.children].map((each) => each.dataset.token));
    field.put = (token) => { add(token); changed(); };
    list.addEventListener("click", (event) => {
      if (event.target.tagName !== "BUTTON") return;
      event.target.closest("li").remove();
      changed();
    });
    const take = async (chosen) => {
      for (const file of chosen) {
        const token = await upload(file, list, field);
        if (token) { remembered.set(token, file.name); add(token, file.name); }
      }
      chooser.value = "";
      changed();
    };
    chooser.addEventListener("change", (event) => { event.stopPropagation(); take([...chooser.files]); });
    droppable(box, take);
  }

  function droppable(place, take) {
    place.addEventListener("dragover", (event) => { event.preventDefault(); place.classList.add("over"); });
    place.addEventListener("dragleave", () => place.classList.remove("over"));
    place.addEventListener("drop", (event) => {
      event.preventDefault();
      place.classList.remove("over");
      if (event.dataTransfer.files.length) take([...event.dataTransfer.files]);
    });
  }

  function upload(file, list, field) {
    const item = document.createElement("li");
    const [shown, bar, stop] = ["span", "progress", "button"].map((tag) => document.createElement(tag));
    Object.assign(shown, { className: "name", textContent: `${say("uploading")} ${file.name}` });
    Object.assign(bar, { max: 1, value: 0 });
    bar.setAttribute("aria-label", shown.textContent);
    Object.assign(stop, { type: "button", textContent: "×" });
    stop.setAttribute("aria-label", `${say("remove")} ${file.name}`);
    item.append(shown, bar, stop);
    list.append(item);
    return new Promise((done) => {
      const request = new XMLHttpRequest();
      const end = (token) => { item.remove(); done(token); };
      request.open("POST", "/api/uploads");
      request.upload.addEventListener("progress", (event) => { if (event.lengthComputable) bar.value = event.loaded / event.total; });
      request.addEventListener("load", () => {
        const answer = JSON.parse(request.responseText || "{}");
        const token = answer.names?.[field.dataset.field]?.[0];
        if (!token) window.page.fault(field, answer.error?.message || say("refused"));
        end(token ?? null);
      });
      for (const kind of ["error", "abort"]) request.addEventListener(kind, () => end(null));
      stop.addEventListener("click", (event) => { event.stopPropagation(); request.abort(); });
      const body = new FormData();
      body.append(field.dataset.field, file);
      request.send(body);
    });
  }

  // --- a config.json pasted or dropped: the server keeps it under a name made of its content ---
  function pasted(details) {
    const field = details.closest(".field");
    const area = details.querySelector("textarea");
    const input = field.querySelector("[role=combobox]");
    const take = async (text, title) => {
      try {
        const config = JSON.parse(text);
        if (config === null || typeof config !== "object" || Array.isArray(config)) throw new TypeError();
      } catch {
        return window.page.fault(field, say("bad"));
      }
      const answer = await fetch("/api/config", { method: "POST", headers: { "Content-Type": "application/json" }, body: text });
      const kept = await answer.json();
      const token = kept.names?.model?.[0];
      if (!token) return window.page.fault(field, kept.error?.message || say("refused"));
      remembered.set(token, title);
      input.value = token;
      details.open = false;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    };
    area.addEventListener("input", (event) => event.stopPropagation());
    area.addEventListener("change", (event) => event.stopPropagation());
    area.addEventListener("paste", () => setTimeout(() => take(area.value, "config.json")));
    area.addEventListener("blur", () => { if (area.value.trim()) take(area.value, "config.json"); });
    droppable(field, async ([file]) => take(await file.text(), file.name));
  }

  // --- pins: a text of axes, and a menu for each ---
  function pins(box) {
    const input = box.closest(".field").querySelector("input");
    const menus = [...box.querySelectorAll("select")];
    const read = () => new Map(input.value.split(",").map((each) => each.split("=").map((part) => part.trim())).filter(([, value]) => value));
    const follows = () => {
      const fixed = read();
      for (const menu of menus) {
        const value = fixed.get(menu.dataset.axis) ?? "";
        if (value && ![...menu.options].some((each) => each.value === value)) menu.add(new Option(value, value));
        menu.value = value;
      }
    };
    follows();
    input.addEventListener("input", follows);
    input.addEventListener("refill", follows);
    for (const menu of menus) {
      menu.addEventListener("change", (event) => {
        event.stopPropagation();
        const fixed = read();
        if (menu.value) fixed.set(menu.dataset.axis, menu.value);
        else fixed.delete(menu.dataset.axis);
        input.value = [...fixed].map((pair) => pair.join("=")).join(",");
        input.dispatchEvent(new Event("change", { bubbles: true }));
      });
    }
  }

  window.widgets = {
    begin(form) {
      form.querySelectorAll(".slider").forEach(slide);
      form.querySelectorAll("[role=combobox]").forEach(combo);
      form.querySelectorAll(".drop").forEach(files);
      form.querySelectorAll(".paste").forEach(pasted);
      form.querySelectorAll(".axes").forEach(pins);
    },
  };
})();
