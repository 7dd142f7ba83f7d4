// Around every page: the menu of a narrow window, light and dark, and `/`, which goes to the first field.
(() => {
  "use strict";
  const menu = document.querySelector(".menu");
  menu.addEventListener("click", () => menu.setAttribute("aria-expanded", String(menu.getAttribute("aria-expanded") !== "true")));

  const shade = document.querySelector(".shade");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  shade.setAttribute("aria-pressed", String(isDark()));
  shade.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    shade.setAttribute("aria-pressed", String(isDark()));
    document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    const first = document.querySelector("#ask input[type=search], #ask [role=combobox], #ask input:not([type=hidden]), .card");
    if (!first) return;
    event.preventDefault();
    first.focus();
    first.select?.();
  });
})();
