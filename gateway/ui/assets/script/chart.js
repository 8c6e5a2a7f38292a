// Adds readouts to charts, and a switch to each entry of their legends. A readout has the values of one interval, which it takes from the
// chart's data table. It follows the pointer, a touch, or the arrow keys. Pages are complete without this script. It creates no markup from
// text.
"use strict";

(() => {
  const create = (name, className, text = "") => {
    const element = document.createElement(name);
    element.className = className;
    element.textContent = text;
    return element;
  };

  // swatches are copies of the legend's, by the index of the series.
  const readouts = (chart) => {
    const plot = chart.querySelector(".chart-plot");
    const box = chart.querySelector(".chart-readout");
    const body = chart.querySelector(".chart-body");
    const table = chart.querySelector("table");
    if (!plot || !box || !table) return;
    const heads = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent);
    const rows = [...table.tBodies[0].rows];
    const hits = [...plot.querySelectorAll(".chart-hit")];
    const swatches = [...chart.querySelectorAll(".chart-legend [data-series] .swatch")];
    let shown = -1;

    const hide = () => {
      hits[shown]?.classList.remove("on");
      box.hidden = true;
      shown = -1;
    };

    const place = (i) => {
      const area = body.getBoundingClientRect();
      const hit = hits[i].getBoundingClientRect();
      const middle = hit.left + hit.width / 2 - area.left;
      const right = middle + 12 + box.offsetWidth <= area.width;
      const left = right ? middle + 12 : middle - 12 - box.offsetWidth;
      box.style.setProperty("left", `${Math.max(0, Math.min(left, area.width - box.offsetWidth))}px`);
    };

    const show = (i) => {
      if (i === shown || !rows[i]) return;
      hits[shown]?.classList.remove("on");
      hits[i].classList.add("on");
      const list = create("dl", "");
      [...rows[i].cells].slice(1).forEach((cell, n) => {
        const entry = create("div", n < swatches.length ? "" : "chart-readout-sum");
        const name = create("dt", "", heads[n]);
        if (n < swatches.length) {
          if (chart.querySelector(`.chart-legend [data-series="${n}"].off`)) return;
          name.prepend(swatches[n].cloneNode(true), " ");
        }
        entry.append(name, create("dd", "", cell.textContent));
        list.append(entry);
      });
      box.replaceChildren(create("p", "", rows[i].cells[0].textContent), list);
      box.hidden = false;
      shown = i;
      place(i);
    };

    const from = (event) => {
      const area = plot.getBoundingClientRect();
      const share = (event.clientX - area.left) / area.width;
      show(Math.max(0, Math.min(rows.length - 1, Math.floor(share * rows.length))));
    };

    for (const hit of hits) hit.querySelector("title")?.remove(); // the readout replaces it
    plot.addEventListener("pointermove", from);
    plot.addEventListener("pointerdown", from);
    plot.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse" && document.activeElement !== plot) hide(); });
    document.addEventListener("pointerdown", (event) => { if (!body.contains(event.target)) hide(); });
    plot.tabIndex = 0;
    plot.setAttribute("aria-label", `${plot.getAttribute("aria-label")}. Left and right arrow keys read the values.`);
    plot.addEventListener("focus", () => { if (plot.matches(":focus-visible")) { box.setAttribute("role", "status"); show(rows.length - 1); } });
    plot.addEventListener("blur", () => { box.removeAttribute("role"); hide(); });
    plot.addEventListener("keydown", (event) => {
      const last = rows.length - 1;
      const to = { ArrowLeft: shown - 1, ArrowRight: shown + 1, Home: 0, End: last }[event.key];
      if (event.key === "Escape") hide();
      if (to === undefined) return;
      event.preventDefault();
      show(Math.max(0, Math.min(last, to)));
    });
  };

  // restack moves the visible parts of a stack down to the base line, and the forecast onto them.
  const restack = (stack, hidden) => {
    let base = Number(stack.dataset.base);
    for (const rect of stack.children) {
      if (hidden.has(rect.dataset.series)) continue;
      base -= Number(rect.getAttribute("height"));
      rect.setAttribute("y", base);
    }
  };

  const switches = (chart) => {
    const hidden = new Set();
    const stacks = [...chart.querySelectorAll(".chart-stack")];
    for (const stack of stacks) {
      const first = stack.firstElementChild;
      stack.dataset.base = Number(first.getAttribute("y")) + Number(first.getAttribute("height"));
    }
    const entries = [...chart.querySelectorAll(".chart-legend [data-series]")];
    if (entries.length < 2) return;
    for (const entry of entries) {
      const button = create("button", "chart-switch");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...entry.childNodes);
      entry.append(button);
      button.addEventListener("click", () => {
        const id = entry.dataset.series;
        const off = !hidden.has(id);
        if (off) hidden.add(id); else hidden.delete(id);
        entry.classList.toggle("off", off);
        button.setAttribute("aria-pressed", String(!off));
        for (const part of chart.querySelectorAll(`.chart-plot [data-series="${id}"]`)) part.classList.toggle("off", off);
        for (const stack of stacks) restack(stack, hidden);
      });
    }
  };

  for (const chart of document.querySelectorAll("[data-chart]")) {
    readouts(chart);
    switches(chart);
  }
})();
