// Keeps line numbers beside the draft, and the typed draft in the history of the tab, so that going back restores it. The page does its work
// without this script.
"use strict";

(() => {
  const form = document.querySelector("form[data-draft]");
  if (!form) return;
  const names = ["rego", "policies", "decision", "input"];
  const text = form.elements.rego;
  const gutter = form.querySelector(".gutter");

  const number = () => {
    const lines = Math.max(16, text.value.split("\n").length + 2);
    text.rows = lines;
    while (gutter.children.length > lines) gutter.lastElementChild.remove();
    while (gutter.children.length < lines) {
      const line = document.createElement("li");
      line.textContent = gutter.children.length + 1;
      gutter.append(line);
    }
  };

  const kept = history.state?.draft;
  if (kept) {
    for (const name of names) if (name in kept) form.elements[name].value = kept[name];
    number();
  }
  form.addEventListener("input", () => {
    history.replaceState({ draft: Object.fromEntries(names.map((name) => [name, form.elements[name].value])) }, "");
    for (const mark of gutter.querySelectorAll("[class]")) mark.removeAttribute("class"); // they are of another text
    for (const mark of gutter.querySelectorAll("span")) mark.remove();
    number();
  });

  const link = document.querySelector("[data-copy-address]");
  if (link && navigator.clipboard) {
    link.hidden = false;
    link.addEventListener("click", async () => {
      await navigator.clipboard.writeText(location.href);
      link.querySelector("span").textContent = "Copied";
    });
  }
})();
