// The page at /docs. It loads the viewer of a tab when the tab is first opened, adds the reader's key to calls made from the page, and shows
// the permissions of that key next to the operations. It never inserts data as markup.
"use strict";

let key = ""; // never stored
let access = null;
const shown = {}; // tabs with a loaded viewer, by name

const byId = (id) => document.getElementById(id);
const withKey = (headers) => (key ? { ...headers, Authorization: "Bearer " + key } : headers);

function notice(message) {
  byId("notice").textContent = message;
  byId("notice").hidden = !message;
}

// load loads a script or style sheet of this gateway once.
const loaded = {};
function load(name) {
  loaded[name] ??= new Promise((resolve, reject) => {
    const style = name.endsWith(".css");
    const e = document.createElement(style ? "link" : "script");
    if (style) e.rel = "stylesheet";
    e[style ? "href" : "src"] = "/docs/" + name;
    e.onload = resolve;
    e.onerror = () => reject(new Error("cannot load " + name));
    document.head.append(e);
  });
  return loaded[name];
}

async function getJSON(path) {
  const res = await fetch(path, { headers: withKey({ Accept: "application/json" }) });
  const body = await res.json();
  if (!res.ok) throw new Error(body.detail || body.message || res.statusText);
  return body;
}

// annotate adds the policies that apply to the reader's key to each operation of the v2 description.
function annotate(spec) {
  const code = (text) => "`" + text.replaceAll("`", "'") + "`";
  for (const operation of Object.values(spec.paths).flatMap(Object.values)) {
    const verdict = access?.operations.find((o) => o.id === operation.operationId);
    const lines = (verdict?.refused ?? []).map((reason) => "- " + code(reason));
    if (lines.length > 0) {
      operation.summary = "(refused for your key) " + (operation.summary ?? "");
      lines.unshift("**Refused for your key**\n");
    } else if (verdict?.conditionalPolicies) {
      lines.push("**Policies for your key**\n");
      for (const p of access.policies.filter((p) => verdict.conditionalPolicies.includes(p.name))) {
        lines.push("- **" + p.name + "** (" + p.mode + ") " + code(JSON.stringify(p.params ?? {})));
      }
    }
    if (lines.length > 0) operation.description = (operation.description ?? "") + "\n\n" + lines.join("\n");
  }
  return spec;
}

async function showREST(path, target) {
  await Promise.all([load("swagger-ui.js"), load("swagger-ui.css")]);
  const spec = annotate(await getJSON(path));
  // The page has its own field for the key.
  delete spec.security;
  delete spec.components.securitySchemes;
  const view = document.createElement("div"); // a viewer does not release its element
  target.replaceChildren(view);
  SwaggerUIBundle({
    spec,
    domNode: view,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    validatorUrl: null,
    tryItOutEnabled: true,
    requestInterceptor: (request) => {
      if (new URL(request.url, location.href).origin === location.origin) request.headers = withKey(request.headers);
      return request;
    },
  });
}

// mend adds accessibility attributes that the viewers lack: labels of fields, and a single main element, which is the page's own.
function mend() {
  for (const part of document.querySelectorAll("main main:not([role])")) part.setAttribute("role", "group");
  for (const select of document.querySelectorAll("#servers:not([aria-label])")) select.setAttribute("aria-label", "Server");
  for (const tag of document.querySelectorAll("h3.opblock-tag:not([aria-level]), section.models > h4:not([aria-level])")) tag.setAttribute("aria-level", "2");
  for (const area of document.querySelectorAll(".CodeMirror textarea:not([aria-label])")) {
    area.setAttribute("aria-label", area.readOnly ? "Response" : area.closest(".graphiql-query-editor") ? "Query" : "Variables and headers");
  }
}
new MutationObserver(mend).observe(byId("v2").parentElement, { childList: true, subtree: true });

let graphiql = null;
async function showGraphQL(target) {
  await Promise.all([load("graphiql.css"), load("react.js").then(() => load("react-dom.js")).then(() => load("graphiql.js"))]);
  const fetcher = async (question) => {
    const res = await fetch("/graphql", { method: "POST", headers: withKey({ "Content-Type": "application/json" }), body: JSON.stringify(question) });
    return res.json();
  };
  graphiql ??= ReactDOM.createRoot(target);
  // A new key makes the viewer load the schema again.
  graphiql.render(React.createElement(GraphiQL, { key, fetcher, defaultQuery: "{ myself { id } }\n" }));
}

const tabs = {
  v2: () => showREST("/v2/openapi.json", byId("v2")),
  run: () => showREST("/docs/run.json", byId("run")),
  v1: () => showREST("/v1/openapi.json", byId("v1-view")),
  graphql: () => showGraphQL(byId("graphql")),
};

async function open(name) {
  for (const other of Object.keys(tabs)) {
    byId(other).hidden = other !== name;
    byId("tab-" + other).toggleAttribute("aria-current", other === name);
  }
  if (shown[name]) return;
  shown[name] = true;
  try {
    await tabs[name]();
  } catch (e) {
    shown[name] = false;
    notice(e.message);
  }
}

const current = () => (location.hash.slice(1) in tabs ? location.hash.slice(1) : "v2");

function fill(id, head, rows) {
  const row = (cells, kind) => {
    const tr = document.createElement("tr");
    for (const cell of cells) tr.append(cell instanceof Node ? cell : Object.assign(document.createElement(kind), { textContent: cell ?? "" }));
    return tr;
  };
  byId(id).replaceChildren(row(head, "th"), ...rows.map((cells) => row(cells, "td")));
}

// priced returns a cell with a price. If the policies refuse the GPU for the reader's key, the price is struck through, followed by the reasons.
function priced(price, refused) {
  const td = document.createElement("td");
  td.append(refused ? Object.assign(document.createElement("del"), { textContent: price }) : (price ?? ""));
  if (refused) td.append(Object.assign(document.createElement("small"), { textContent: " refused: " + refused.join("; ") }));
  return td;
}

function showAccess() {
  byId("access").hidden = access === null;
  if (access === null) return;
  const who = [["organisation", access.org], ["team", access.team], ["key", access.key], ["roles", access.roles?.join(", ")]];
  byId("access").querySelector("summary").textContent = "Your access: " + who.filter(([, v]) => v).map(([k, v]) => k + " " + v).join(", ");
  fill("limits", ["Scope", "Window", "Remaining", "Limit", "Resets in"], access.limits.map((l) => [l.scope, l.window, l.remaining, l.limit, l.resetSeconds + " s"]));
  fill("budgets", ["Scope", "Budget", "Limit", "Used", "Reserved", "Remaining"], access.budgets.map((b) => [b.scope, b.name, b.limit, b.used, b.reserved, b.left]));
  fill("policies", ["Policy", "Mode", "Parameters", "Description"], access.policies.map((p) => [p.name, p.mode, p.params && JSON.stringify(p.params), p.title]));
  fill("prices", ["GPU", "Secure", "Community"], access.prices.map((p) => [p.name || p.id, priced(p.secure, p.secureRefused), priced(p.community, p.communityRefused)]));
}

byId("key-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  key = byId("key").value.trim();
  access = null;
  notice("");
  try {
    if (key) access = await getJSON("/docs/access");
  } catch (e) {
    notice(e.message);
  }
  showAccess();
  for (const name of Object.keys(shown)) shown[name] = false;
  await open(current());
});

for (const name of Object.keys(tabs)) byId("tab-" + name).addEventListener("click", () => open(name));
addEventListener("popstate", () => open(current()));
// A gateway may not serve the run interface.
fetch("/docs/run.json", { method: "HEAD" }).then((res) => { byId("tab-run").hidden = !res.ok; });
open(current());
