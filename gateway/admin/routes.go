package admin

import (
	"net/http"
	"net/http/pprof"
)

// Shapes are zero values of what Decisions, Approvals and Keys return, for the document
// that describes the API.
type Shapes struct{ Report, Summary, Audit, Approval, Key, Made any }

// route is one entry of the admin API.
type route struct {
	pattern string
	// do returns what is answered; call says how.
	do func(r *http.Request) (any, error)
	// role is required; anyone requires no token: probes and metrics.
	role  Role
	about subject
	// changes marks routes that change something; each such request is logged.
	changes bool
	call
}

// subject is what a route is about, which bounds who is bound to an organisation.
type subject int

const (
	// ofGateway is not for those who are bound.
	ofGateway subject = iota
	// ofOrg is for the organisation that the parameter org names.
	ofOrg
	// ofAsking shows everyone what is theirs.
	ofAsking
)

// ofLedger are the statuses of routes about the ledger of an organisation.
var ofLedger = []int{http.StatusBadRequest, http.StatusNotFound, http.StatusServiceUnavailable} //nolint:gochecknoglobals // read only

// ofKeys are those of changes of keys.
var ofKeys = []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusServiceUnavailable} //nolint:gochecknoglobals // read only

// routes is the whole of the admin API.
func (d Deps) routes() []route {
	const profile = "application/octet-stream"
	return []route{
		{"GET /livez", live, anyone, ofGateway, false, call{summary: "Whether the process runs", answer: probed{}}},
		{"GET /readyz", nil, anyone, ofGateway, false, call{handle: d.ready, summary: "Whether calls are served", answer: probed{}, fails: []int{503}}},
		{"GET /metrics", nil, anyone, ofGateway, false, call{handle: d.Metrics.ServeHTTP, summary: "Metrics for Prometheus", media: "text/plain"}},
		{"GET /admin/openapi.json", d.openAPI, RoleViewer, ofAsking, false, call{summary: "This document", answer: object{}}},
		{"GET /admin/status", d.status, RoleViewer, ofGateway, false, call{summary: "The configuration in force", answer: Report{}}},
		{"GET /admin/limits", d.limits, RoleViewer, ofOrg, false, call{summary: "Windows in use of the quotas of an organisation", query: []param{paramOrg}, answer: windowList{}, fails: []int{404, 503}}},
		{"POST /admin/limits/reset", d.reset, RoleOperator, ofOrg, true, call{summary: "Empty the windows of a scope, or of the whole organisation", query: []param{paramOrg, {name: "scope", doc: "key:ID, team:ID or org; absent is all"}}, fails: ofLedger}},
		{"GET /admin/spend", d.spend, RoleViewer, ofOrg, false, call{summary: "The ledger of an organisation", query: []param{paramOrg}, answer: Ledger{}, fails: ofLedger}},
		{"POST /admin/spend/reconcile", d.reconcile, RoleOperator, ofOrg, true, call{summary: "Compare the ledger with the platform", query: []param{paramOrg}, answer: Reconciled{}, fails: ofLedger}},
		{"POST /admin/spend/adopt", d.adopt, RoleOperator, ofOrg, true, call{summary: "Give a resource an owner", query: []param{paramOrg, paramID, {name: "team", doc: "id of a team"}, {name: "key", doc: "id of a key"}}, answer: Adopted{}, fails: ofLedger}},
		{"POST /admin/spend/holds/release", d.releaseHold, RoleOperator, ofOrg, true, call{summary: "End a reservation", query: []param{paramOrg, {name: "id", doc: "id of a hold", required: true}, {name: "reason", doc: "why, at most 500 bytes", required: true}}, answer: Hold{}, fails: ofLedger}},
		{"GET /admin/spend/history", d.costs, RoleViewer, ofOrg, false, call{summary: "What resources have cost", query: costQuery(true), answer: Costs{}, fails: ofLedger}},
		{"GET /admin/spend/forecast", d.forecast, RoleViewer, ofOrg, false, call{summary: "What each scope is likely to spend", query: []param{paramOrg}, answer: Forecasts{}, fails: ofLedger}},
		{"GET /admin/spend/export", nil, RoleViewer, ofOrg, false, call{handle: d.export, summary: "What resources have cost, in the columns of FOCUS 1.2", query: costQuery(false), media: "text/csv", fails: ofLedger}},
		{"GET /admin/spend/idle", d.idle, RoleViewer, ofOrg, false, call{summary: "What costs money and does not work", query: []param{paramOrg}, answer: IdleList{}, fails: ofLedger}},
		{"POST /admin/spend/keep", d.keep, RoleOperator, ofOrg, true, call{summary: "Leave an idle resource alone", query: []param{paramOrg, paramID, {name: "for", doc: "how long, such as 24h; 0s ends it", required: true}}, answer: Kept{}, fails: ofLedger}},
		{"GET /admin/approvals", d.approvals, RoleViewer, ofOrg, false, call{summary: "Requests for approval", query: []param{paramOrg}, answer: list{name: "approvals", item: d.Shapes.Approval}, fails: []int{404, 503}}},
		{"POST /admin/approvals/grant", d.grant, RoleApprover, ofOrg, true, call{summary: "Let a refused call pass once", query: paramAnswer, answer: d.Shapes.Approval, fails: ofLedger}},
		{"POST /admin/approvals/deny", d.deny, RoleApprover, ofOrg, true, call{summary: "Deny a request for approval", query: paramAnswer[:4], answer: d.Shapes.Approval, fails: ofLedger}},
		{"GET /admin/keys", d.keys, RoleViewer, ofOrg, false, call{summary: "Keys of an organisation, those of the configuration among them", query: []param{paramOrg}, answer: list{name: "keys", item: d.Shapes.Key}, fails: ofLedger}},
		{"POST /admin/keys/create", d.createKey, RoleAdmin, ofOrg, true, call{summary: "Make a key", query: []param{paramOrg, {name: "spec", doc: "a key as under keys of the configuration, in JSON", required: true}}, status: 201, answer: d.Shapes.Made, fails: ofKeys}},
		{"POST /admin/keys/rotate", d.rotateKey, RoleAdmin, ofOrg, true, call{summary: "Give a key another secret", query: []param{paramOrg, paramKey, {name: "overlap", doc: "how long those it has are accepted, such as 24h", required: true}}, answer: d.Shapes.Made, fails: ofKeys}},
		{"POST /admin/keys/revoke", d.revokeKey, RoleAdmin, ofOrg, true, call{summary: "Withdraw a key", query: []param{paramOrg, paramKey}, fails: ofKeys}},
		{"GET /admin/tokens/revoked", d.revokedTokens, RoleViewer, ofGateway, false, call{summary: "Tokens of issuers that are revoked", answer: revokedList{}, fails: []int{503}}},
		{"POST /admin/tokens/revoke", d.revokeToken, RoleAdmin, ofGateway, true, call{summary: "Revoke a token of an issuer, or those of a subject that were issued until now", query: []param{{name: "issuer", doc: "id or URL of an issuer", required: true}, {name: "id", doc: "jti of the token"}, {name: "subject", doc: "sub of the tokens"}}, answer: RevokedToken{}, fails: []int{400, 404, 409, 503}}},
		{"GET /admin/legacy", d.legacy, RoleViewer, ofOrg, false, call{summary: "Who calls the retired interfaces", query: []param{paramAnyOrg}, answer: legacyList{}, fails: []int{404, 503}}},
		{"GET /admin/envoy", d.envoys, RoleViewer, ofGateway, false, call{summary: "Groups of Envoys, and the Envoys connected to this gateway", answer: envoyList{}}},
		{"GET /admin/envoy/snapshot", d.envoySnapshot, RoleViewer, ofGateway, false, call{summary: "What a group of Envoys is served", query: []param{{name: "group", doc: "a node group of the configuration", required: true}}, answer: EnvoySnapshot{}, fails: []int{400}}},
		{"GET /admin/decisions", d.decisions, RoleViewer, ofOrg, false, call{summary: "The latest exchanges", query: paramDecisions, answer: list{"decisions", d.Shapes.Summary, []string{"incomplete"}}, fails: []int{400}}},
		{"GET /admin/decisions/log", nil, RoleOperator, ofOrg, false, call{handle: d.decisionLog, summary: "The decision log of this gateway, an event per line", query: []param{paramOrg, {name: "since", doc: "keeps what is later than an RFC 3339 time"}}, media: "application/x-ndjson", fails: []int{400, 404, 409}}},
		{"GET /admin/decisions/{id}", d.decision, RoleViewer, ofAsking, false, call{summary: "What became of an exchange, stage by stage", answer: d.Shapes.Report, fails: []int{404, 503}}},
		{"POST /admin/explain", d.explain, RoleViewer, ofAsking, false, call{summary: "What would become of a request", body: question{}, answer: d.Shapes.Report, fails: []int{400, 500}}},
		{"GET /admin/audit", d.audit, RoleViewer, ofOrg, false, call{summary: "What an organisation has, held against its policies", query: []param{paramOrg}, answer: d.Shapes.Audit, fails: []int{404, 502}}},
		{"GET /debug/pprof/", nil, RoleOperator, ofGateway, false, call{handle: pprof.Index, summary: "Profiles of the process", media: "text/html"}},
		{"GET /debug/pprof/profile", nil, RoleOperator, ofGateway, false, call{handle: pprof.Profile, summary: "A profile of the processors", query: []param{{name: "seconds", doc: "how long; absent is 30"}}, media: profile}},
		{"GET /debug/pprof/symbol", nil, RoleOperator, ofGateway, false, call{handle: pprof.Symbol, summary: "Names of program counters", media: "text/plain"}},
		{"GET /debug/pprof/trace", nil, RoleOperator, ofGateway, false, call{handle: pprof.Trace, summary: "A trace of the execution", query: []param{{name: "seconds", doc: "how long; absent is 1"}}, media: profile}},
	}
}

// windowList and legacyList are lists as they are answered.
type windowList struct {
	Windows []Window `json:"windows"`
}

type legacyList struct {
	Calls []LegacyCall `json:"calls"`
}

// question is a request that is to be explained.
type question struct {
	Method string            `json:"method"`
	Path   string            `json:"path"` // with the query
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
	Org    string            `json:"org,omitempty"`
	Key    string            `json:"key,omitempty"`
	Team   string            `json:"team,omitempty"`
	Roles  []string          `json:"roles,omitempty"`
}

func live(*http.Request) (any, error) { return probed{Status: "live"}, nil }
