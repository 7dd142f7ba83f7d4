// The page: what the form says stands in the address, the answer follows it. No framework, no request to another machine.
(() => {
  "use strict";
  const form = document.getElementById("ask");
  const words = document.getElementById("words")?.dataset ?? {};
  const status = document.getElementById("said");
  const pause = 150;
  if (!form) return;

  const verb = form.dataset.verb;
  const answer = document.getElementById("answer");
  const shown = document.getElementById("shown");
  const bar = answer.querySelector(".bar");
  const box = answer.querySelector(".job");
  const fields = [...form.querySelectorAll(".field")];
  const usual = { lang: "en", units: "iec" };

  // --- state: form and address say the same ---
  const inputs = (field) => [...field.querySelectorAll("input[name], select[name], textarea[name]")];

  function arrange() {
    for (const field of fields) {
      const other = field.dataset.when && form.elements[field.dataset.when];
      if (other) field.hidden = !field.dataset.values.split(" ").includes(other.value);
      for (const each of inputs(field)) each.disabled = field.hidden;
    }
  }

  function state() {
    const found = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      if (typeof value === "string" && value.trim() && usual[name] !== value) found.append(name, value.trim());
    }
    return found;
  }

  function fill(text) {
    const given = new URLSearchParams(text);
    const own = [...given.keys()].some((name) => name !== "lang" && name !== "units");
    const wanted = own ? given : new URLSearchParams(form.dataset.example);
    for (const field of fields) {
      const values = wanted.getAll(field.dataset.field);
      const drop = field.dataset.kind === "file";
      if (drop) { field.refill(values); continue; }
      inputs(field).forEach((each, place) => {
        if (each.type === "radio") each.checked = values.length ? each.dataset.name === values[0] : place === 0;
        else if (each.type === "checkbox") each.checked = values.length > 0;
        else each.value = values[place] ?? "";
        each.dispatchEvent(new Event("refill"));
      });
    }
    form.elements.units.value = given.get("units") ?? usual.units;
    for (const group of form.querySelectorAll(".either")) {
      const used = [...group.querySelectorAll(".field")].find((field) => wanted.has(field.dataset.field));
      if (used) choose(group, used.dataset.alt);
    }
    arrange();
  }

  function choose(group, name) {
    for (const tab of group.querySelectorAll(".tab")) tab.setAttribute("aria-checked", String(tab.dataset.alt === name));
    for (const tab of group.querySelectorAll(".tab")) tab.tabIndex = tab.dataset.alt === name ? 0 : -1;
    for (const field of group.querySelectorAll(".field")) field.hidden = field.dataset.alt !== name;
  }

  // --- the address: one entry of the history a change, however long a slider is held ---
  let changing = false;
  let timer = 0;

  function address() {
    const text = state().toString();
    return `/${verb}${text ? `?${text}` : ""}`;
  }

  function change(done) {
    arrange();
    const next = address();
    if (next === location.pathname + location.search) { if (done) changing = false; return; }
    if (changing) history.replaceState(null, "", next);
    else history.pushState(null, "", next);
    changing = !done;
    clearTimeout(timer);
    timer = setTimeout(ask, done ? 0 : pause);
  }

  // A name half typed is no question yet: it is asked when chosen or left.
  const halfTyped = (input) => input.type === "file" || input.getAttribute("role") === "combobox";
  form.addEventListener("input", (event) => { if (!halfTyped(event.target)) change(false); });
  form.addEventListener("change", () => change(true));
  document.querySelector("select[name=units]").addEventListener("change", () => change(true));
  form.addEventListener("submit", (event) => { event.preventDefault(); change(true); clearTimeout(timer); ask(); });
  window.addEventListener("popstate", () => { changing = false; fill(location.search); ask(); });

  document.querySelector(".lang").addEventListener("click", (event) => {
    const there = state();
    if (event.currentTarget.dataset.lang === "en") there.delete("lang");
    else there.set("lang", event.currentTarget.dataset.lang);
    event.currentTarget.href = `/${verb}?${there}`;
  });

  // --- the answer ---
  let running = null;
  let late = 0;

  async function ask() {
    clearTimeout(timer);
    running?.abort();
    const mine = (running = new AbortController());
    clearTimeout(late);
    late = setTimeout(() => { bar.hidden = false; answer.classList.add("stale"); }, 180);
    answer.setAttribute("aria-busy", "true");
    const query = state().toString();
    try {
      const html = form.dataset.job && query ? await byJob(query, mine.signal) : await plainly(query, mine.signal);
      if (html !== null) show(html);
    } catch (problem) {
      if (mine.signal.aborted) return;
      show(null);
      report(problem.message && problem.name !== "TypeError" ? problem.message : words.failed);
    } finally {
      if (running === mine) rest();
    }
  }

  function rest() {
    clearTimeout(late);
    bar.hidden = true;
    answer.classList.remove("stale");
    answer.setAttribute("aria-busy", "false");
  }

  async function plainly(query, signal) {
    const found = await fetch(`/page/${verb}/result?${query}`, { signal });
    if (!found.headers.get("content-type")?.includes("json")) return found.text();
    report((await found.json()).error?.message ?? found.statusText);
    return null;
  }

  function report(text) {
    const line = document.createElement("p");
    line.className = "problem";
    line.setAttribute("role", "alert");
    line.textContent = text;
    shown.querySelectorAll(":scope > .problem, :scope > .waiting").forEach((each) => each.remove());
    shown.prepend(line);
    peek.firstElementChild.textContent = text;
    answer.classList.add("faulty");
  }

  function show(html) {
    if (html === null) return;
    const made = document.createElement("template");
    made.innerHTML = html;
    const problem = made.content.querySelector(".problem");
    forgive();
    answer.classList.toggle("faulty", Boolean(problem));
    if (problem) {
      shown.querySelectorAll(":scope > .problem, :scope > .waiting").forEach((each) => each.remove());
      shown.prepend(problem);
      peek.firstElementChild.textContent = problem.querySelector(".what").textContent;
      for (const each of problem.querySelectorAll("li")) blame(each);
      return;
    }
    const open = [...shown.querySelectorAll("details[data-keep][open]")].map((each) => each.dataset.keep);
    for (const each of made.content.querySelectorAll("details[data-keep]")) each.open = open.includes(each.dataset.keep);
    const height = shown.offsetHeight;
    shown.style.setProperty("min-height", `${height}px`); // pictures grow in place: the page does not jump
    shown.replaceChildren(made.content);
    status.textContent = peek.firstElementChild.textContent = shown.querySelector(".answered")?.dataset.headline ?? "";
    for (const each of shown.querySelectorAll("pre.drawn")) each.tabIndex = 0; // scrolls sideways: by keyboard too
    if (form.dataset.pick) pickable();
    drawn().then(() => {
      shown.style.removeProperty("min-height");
      if (compared) shown.querySelector('[data-block^="Why:"]')?.scrollIntoView({ block: "start" });
      compared = false;
    });
  }

  // --- on a phone the answer is below the form: its first line stays in sight until it is reached ---
  const peek = document.querySelector(".peek");
  const watch = new IntersectionObserver(([seen]) => { peek.hidden = seen.isIntersecting || seen.boundingClientRect.top < 0; }, { rootMargin: "0px 0px -35% 0px" });
  watch.observe(answer);

  // --- pictures: the library comes after the first answer ---
  let library = null;

  function drawn() {
    if (!shown.querySelector("figure.chart")) return Promise.resolve();
    library ??= new Promise((done) => {
      const script = document.createElement("script");
      script.src = document.body.dataset.vega;
      script.addEventListener("load", done);
      script.addEventListener("error", done);
      document.head.append(script);
    });
    return library.then(() => window.suanli?.draw(shown));
  }

  // --- faults stand at the field they belong to ---
  function forgive() {
    for (const each of form.querySelectorAll("[aria-invalid]")) each.removeAttribute("aria-invalid");
    for (const each of form.querySelectorAll(".error")) each.hidden = true;
  }

  function fault(field, text, extra) {
    const line = field.querySelector(".error");
    line.replaceChildren(text, ...(extra ? [" ", extra] : []));
    line.hidden = false;
    inputs(field)[0]?.setAttribute("aria-invalid", "true");
    const more = field.closest("details.more");
    if (more) more.open = true;
  }

  function blame(item) {
    const field = fields.find((each) => each.dataset.field === item.dataset.field && !each.hidden);
    if (!field) return;
    const nearest = item.querySelector(".nearest");
    fault(field, item.querySelector(".message").cloneNode(true), nearest?.cloneNode(true));
  }

  // --- long work: a job that is told of, can be cancelled and outlives a reload ---
  const job = (query) => `job ${verb}?${query}`;

  async function byJob(query, signal) {
    let id = sessionStorage.getItem(job(query));
    if (!id) {
      const begun = await fetch(`/page/${verb}/job?${query}`, { method: "POST", signal });
      const told = await begun.json();
      if (!told.id) return told.html ?? plainly(query, signal);
      id = told.id;
      sessionStorage.setItem(job(query), id);
    }
    const slow = setTimeout(() => { box.hidden = false; progress({}); }, 250);
    signal.addEventListener("abort", () => { clearTimeout(slow); box.hidden = true; });
    box.querySelector(".cancel").onclick = () => fetch(`/page/${verb}/job/${id}`, { method: "DELETE" });
    try {
      return await watched(id, query, signal);
    } finally {
      clearTimeout(slow);
      if (!signal.aborted) box.hidden = true;
    }
  }

  async function watched(id, query, signal) {
    for (let wait = 80; ; wait = Math.min(wait * 1.5, 600)) {
      const told = await (await fetch(`/page/${verb}/job/${id}?${query}`, { signal })).json();
      if (told.state === "gone") { // kept no longer: begin anew
        sessionStorage.removeItem(job(query));
        return byJob(query, signal);
      }
      if (told.ok === false) { // refused: asking again would say the same
        report(told.error?.message ?? "");
        return null;
      }
      if (told.state === "cancelled") {
        sessionStorage.removeItem(job(query));
        cancelled();
        return null;
      }
      if (told.state === "done") return told.html;
      progress(told);
      await new Promise((done) => setTimeout(done, wait));
    }
  }

  function progress(told) {
    const line = box.querySelector("progress");
    if (told.part === undefined || told.part === null) line.removeAttribute("value");
    else line.value = told.part;
    box.querySelector(".doing").textContent = told.what ? `${words.working} ${told.what}` : words.working;
  }

  function cancelled() {
    report(words.cancelled);
    const again = document.createElement("button");
    Object.assign(again, { type: "button", className: "name", textContent: words.again });
    again.addEventListener("click", ask);
    shown.querySelector(".problem").append(" ", again);
    status.textContent = words.cancelled;
  }

  // --- two layouts side by side ---
  function pickable() {
    const table = shown.querySelector(".block.table table");
    const pair = form.querySelector(`[data-field="${form.dataset.pick}"]`);
    if (!table || !pair) return;
    const marks = () => inputs(pair).map((each) => each.value.trim());
    [...table.tBodies[0].rows].forEach((row) => {
      const place = row.cells[0].textContent.trim();
      if (!/^\d+$/.test(place)) return;
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: "pickrow", textContent: place });
      button.setAttribute("aria-label", `${words.pick}: ${place}`);
      button.title = words.pick;
      const chosen = marks().includes(place);
      button.setAttribute("aria-pressed", String(chosen));
      row.classList.toggle("picked", chosen);
      row.cells[0].replaceChildren(button);
      button.addEventListener("click", () => pick(pair, place));
    });
  }

  let half = null; // the first of two, until the second is chosen
  let compared = false; // two were just chosen: what changed is brought into sight

  function pick(pair, place) {
    const [first, second] = inputs(pair);
    if (half === null || half === place) {
      half = half === place ? null : place;
      for (const each of shown.querySelectorAll(".pickrow")) {
        const on = each.textContent === half;
        each.setAttribute("aria-pressed", String(on));
        each.closest("tr").classList.toggle("picked", on);
      }
      return;
    }
    [first.value, second.value] = [half, place];
    half = null;
    compared = true;
    first.dispatchEvent(new Event("change", { bubbles: true }));
  }

  // --- clicks ---
  async function why(button) {
    const asked = state();
    for (const name of ["block", "label", "column"]) asked.set(name, button.dataset[name] ?? "");
    const dialog = document.querySelector("dialog.note");
    const found = await fetch(`/page/${verb}/why?${asked}`);
    dialog.innerHTML = await found.text();
    if (!dialog.open) dialog.showModal();
    dialog.querySelector(".close")?.focus();
  }

  function put(name, value) {
    const field = fields.find((each) => each.dataset.field === name);
    if (!field) return;
    if (field.put) return field.put(value);
    const input = inputs(field)[0];
    input.value = value;
    input.dispatchEvent(new Event("refill"));
    input.dispatchEvent(new Event("change", { bubbles: true }));
    input.focus();
  }

  async function copy(button) {
    await navigator.clipboard.writeText(button.dataset.copyAddress ? location.href : button.dataset.copy);
    const before = button.textContent;
    button.textContent = words.copied;
    status.textContent = words.copied;
    setTimeout(() => { button.textContent = before; }, 1400);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    for (const each of shown.querySelectorAll(".tools details[open]")) if (!each.contains(event.target)) each.open = false;
    if (!button) return;
    if (button.classList.contains("why")) why(button);
    else if (button.dataset.set) put(button.dataset.set, button.dataset.value);
    else if (button.classList.contains("copy")) copy(button);
    else if (button.classList.contains("hint")) hint(button);
    else if (button.classList.contains("tab")) tab(button);
    else if (button.classList.contains("clear")) clear(button.closest(".field"));
  });

  function hint(button) {
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    document.getElementById(button.getAttribute("aria-controls")).hidden = !open;
  }

  function tab(button) {
    choose(button.closest(".either"), button.dataset.alt);
    arrange();
    const group = button.closest(".either");
    if (inputs(group).some((each) => !each.disabled && each.value)) change(true);
    else inputs(group).find((each) => !each.disabled)?.focus();
  }

  function clear(field) {
    for (const each of inputs(field)) each.value = "";
    change(true);
  }

  form.addEventListener("keydown", (event) => {
    if (!event.target.classList.contains("tab") || !/^Arrow/.test(event.key)) return;
    event.preventDefault();
    const tabs = [...event.target.parentNode.children];
    const next = tabs[(tabs.indexOf(event.target) + (/Right|Down/.test(event.key) ? 1 : -1) + tabs.length) % tabs.length];
    next.focus();
    next.click();
  });

  window.page = { fault, fill, state };
  window.widgets.begin(form);
  arrange();
  ask();
})();
