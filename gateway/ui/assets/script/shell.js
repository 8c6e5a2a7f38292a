// Small comforts of the shell: "/" focuses the search, buttons copy texts, themes and the sidebar change without loading the page, a toast
// can be closed, the heads of tables stay in view. The pages do all their work without this script.
"use strict";

(() => {
  const search = document.querySelector("#q");
  document.addEventListener("keydown", (e) => {
    const typing = e.target.closest?.("input, textarea, select, [contenteditable]");
    if (e.key === "/" && search && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
      e.preventDefault();
      search.focus();
      search.select();
    }
    if (e.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
      menu.open = false;
    }
  });
  document.addEventListener("click", (e) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(e.target)) menu.open = false;
  });

  for (const button of document.querySelectorAll("[data-copy]")) {
    if (!navigator.clipboard) break;
    button.hidden = false;
    const label = button.querySelector("span");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      label.textContent = "Copied";
      setTimeout(() => { label.textContent = "Copy"; }, 2000);
    });
  }

  // A table that fits needs no scrolling box, so that its head can stay in view.
  const fit = new ResizeObserver((changes) => {
    for (const { target } of changes) target.classList.toggle("fits", target.scrollWidth <= target.clientWidth);
  });
  for (const box of document.querySelectorAll(".data > .scroll")) fit.observe(box);

  const toast = document.querySelector(".toast");
  if (toast) {
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "×";
    close.ariaLabel = "Close";
    close.addEventListener("click", () => toast.remove());
    toast.append(close);
  }
})();
