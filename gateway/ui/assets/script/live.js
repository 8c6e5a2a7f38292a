// Shows decisions as they are made, above those that the page had when it was loaded. The page is whole without this script. It makes no
// markup of any text: a row is a copy of the page's template, and texts become text.
"use strict";

(() => {
  const list = document.querySelector("[data-live]");
  const pattern = document.querySelector("#decision");
  if (!list || !pattern || !window.EventSource) return;

  const most = 200; // rows on the page
  const rows = list.querySelector("tbody");
  const bar = document.querySelector("#live");
  const state = bar.querySelector("[role=status]");
  const button = bar.querySelector("button");
  let source = null;
  let told = 0;
  let lost = false;

  const say = (text) => { state.textContent = text; };
  const count = () => say(`Live: ${told} new${lost ? ". Some are missing: load the page again" : ""}`);

  const fill = (element, d) => {
    const value = d[element.dataset.is] ?? "";
    element.textContent = value;
    switch (element.dataset.is) {
      case "time":
        element.textContent = `${value.slice(0, 10)} ${value.slice(11, 16)} UTC`;
        element.dateTime = value;
        break;
      case "verdict":
        element.className = `tag ${value}`;
        break;
      case "decisionId":
        element.parentElement.href = `/ui/requests/${encodeURIComponent(value)}`;
        break;
    }
  };

  const show = (d) => {
    if ([...rows.querySelectorAll("[data-is=decisionId]")].some((e) => e.textContent === d.decisionId)) return;
    const row = pattern.content.cloneNode(true);
    const team = d.team ? `team ${d.team}` : "";
    for (const element of row.querySelectorAll("[data-is]")) fill(element, { ...d, team, reason: d.reason ?? d.own?.did });
    rows.prepend(row);
    while (rows.children.length > most) rows.lastElementChild.remove();
    list.hidden = false;
    document.querySelector("#none")?.remove();
    told++;
    count();
  };

  const stop = (why) => {
    source?.close();
    source = null;
    button.textContent = "Go on";
    say(why);
  };

  const start = () => {
    source = new EventSource(list.dataset.live);
    source.addEventListener("open", count);
    source.addEventListener("decision", (e) => show(JSON.parse(e.data)));
    source.addEventListener("missed", () => { lost = true; count(); });
    source.addEventListener("end", (e) => stop(`Not live: ${JSON.parse(e.data).reason}`));
    source.addEventListener("error", () => {
      lost = true; // until it is connected again
      if (source?.readyState === EventSource.CLOSED) stop("Not live: the gateway does not answer, or too many pages are open");
      else say("Not live: connecting again");
    });
    button.textContent = "Pause";
  };

  button.addEventListener("click", () => {
    if (source) stop("Paused");
    else { lost = true; start(); }
  });
  addEventListener("pagehide", () => source?.close());
  bar.hidden = false;
  start();
})();
