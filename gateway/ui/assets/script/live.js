// Shows requests as they end, above those that the page had when it was loaded. The page is whole without this script. It makes no markup of
// any text: a row is a copy of the page's template, and texts become text.
"use strict";

(() => {
  const list = document.querySelector("[data-live]");
  const pattern = list?.querySelector("template[data-row]");
  const bar = document.querySelector("#live");
  if (!list || !pattern || !bar || !window.EventSource) return;

  const most = 200; // rows on the page
  const rows = list.querySelector("tbody");
  const state = bar.querySelector("[role=status]");
  const button = bar.querySelector("button");
  const label = button.querySelector("span");
  const badges = {};
  for (const badge of document.querySelectorAll("template[data-outcome]")) badges[badge.dataset.outcome] = badge.content;
  let source = null;
  let added = 0;
  let lost = false;

  const say = (text) => { state.textContent = text; };
  const count = () => say(`Live, ${added} new${lost ? ". Some requests are missing: reload the page" : ""}`);

  const line = (text) => {
    const small = document.createElement("small");
    small.className = "sub";
    small.textContent = text;
    return small;
  };
  const dialects = { v1: "v1 API", graphql: "GraphQL API", run: "Run API", chat: "Chat API" };
  const clock = new Intl.DateTimeFormat("en-US", { timeZone: bar.dataset.zone, hourCycle: "h23", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const time = (at) => {
    const element = document.createElement("time");
    element.dateTime = at;
    const parts = Object.fromEntries(clock.formatToParts(new Date(at)).map((p) => [p.type, p.value]));
    element.textContent = `${parts.day} ${parts.month} ${parts.hour}:${parts.minute}:${parts.second}`;
    element.title = `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`;
    return element;
  };
  const cents = (usd) => `$${Number(usd).toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: Number(usd) < 0.005 ? 6 : 2 })}`;

  const brief = (reason) => {
    const text = reason.split("; to request approval, ")[0].split(" (allowed: ")[0];
    return text.length > 160 ? `${text.slice(0, 160)}…` : text;
  };

  // What each column shows of a request.
  const columns = {
    time: (d) => [time(d.time), line("just now")],
    outcome: (d) => [badges[d.own ? "own" : d.outcome]?.cloneNode(true) ?? d.outcome ?? "", ...(d.dry ? [line("Dry run")] : [])],
    operation: (d) => [d.operation === "unmatched" ? "Unknown operation" : d.operation, line(dialects[d.dialect] ?? "")],
    caller: (d) => [d.key ?? "", line(d.team ? `team ${d.team}` : "")],
    resource: (d) => {
      const code = document.createElement("code");
      code.textContent = d.resource ?? "";
      return d.resource ? [code] : [];
    },
    status: (d) => [d.status ? String(d.status) : ""],
    reason: (d) => [d.own?.did ?? brief(d.reason ?? "")],
    price: (d) => [d.usdPerHour ? cents(d.usdPerHour) : ""],
    latency: (d) => [d.durationMs ? Math.max(0.01, d.durationMs).toFixed(2) : ""],
  };

  const show = (d) => {
    if ([...rows.children].some((r) => r.dataset.id === d.decisionId)) return;
    const row = pattern.content.cloneNode(true).firstElementChild;
    row.dataset.id = d.decisionId;
    row.classList.add("new");
    for (const cell of row.querySelectorAll("[data-key]")) (cell.querySelector("a.row") ?? cell).replaceChildren(...(columns[cell.dataset.key]?.(d) ?? []));
    const link = row.querySelector("a.row");
    if (link) link.href = link.getAttribute("href").replace("/requests/", `/requests/${encodeURIComponent(d.decisionId)}`);
    rows.prepend(row);
    while (rows.children.length > most) rows.lastElementChild.remove();
    list.hidden = false;
    document.querySelector("[data-empty]")?.remove();
    added++;
    count();
  };

  const stop = (why) => {
    source?.close();
    source = null;
    label.textContent = "Resume";
    bar.classList.add("paused");
    say(why);
  };

  const start = () => {
    source = new EventSource(list.dataset.live);
    source.addEventListener("open", count);
    source.addEventListener("decision", (e) => show(JSON.parse(e.data)));
    source.addEventListener("missed", () => { lost = true; count(); });
    source.addEventListener("end", (e) => stop(`Live updates ended: ${JSON.parse(e.data).reason}`));
    source.addEventListener("error", () => {
      lost = true; // until it is connected again
      if (source?.readyState === EventSource.CLOSED) stop("Live updates are off: the gateway does not answer, or too many pages are open");
      else say("Reconnecting");
    });
    label.textContent = "Pause";
    bar.classList.remove("paused");
  };

  button.addEventListener("click", () => {
    if (source) stop("Paused");
    else { lost = true; start(); }
  });
  addEventListener("pagehide", () => source?.close());
  bar.hidden = false;
  start();
})();
