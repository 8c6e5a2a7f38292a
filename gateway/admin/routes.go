package admin

import (
	"net/http"
	"net/http/pprof"
	"reflect"

	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Shapes are zero values of the results of Decisions, Drafts, Approvals and Keys, for the description of the API.
type Shapes struct{ Report, Summary, Audit, Replayed, Approval, Made any }

// Rows returns the whole of the operators' listener. Those of the zero Deps can be read, and not be asked.
func (d Deps) Rows() []row.Row {
	d.streams = semaphore.NewWeighted(maxStreams)
	seconds := []row.Param{{Name: "seconds", Doc: "how long", Type: reflect.TypeFor[int]()}}
	const profile = "application/octet-stream"
	return []row.Row{
		{Pattern: "GET /livez", Summary: "Whether the process runs", Handle: live, Answer: reflect.TypeFor[probed]()},
		{Pattern: "GET /readyz", Summary: "Whether calls are served", Handle: d.ready, Answer: reflect.TypeFor[probed](), Fails: []int{http.StatusServiceUnavailable}},
		{Pattern: "GET /metrics", Summary: "Metrics for Prometheus", Handle: d.metrics, Media: "text/plain"},
		{Pattern: "GET /admin/openapi.json", Summary: "This document", Role: row.Viewer, About: row.OfAsker, Ask: row.Do(d.openAPI)},
		{Pattern: "GET /admin/status", Summary: "The configuration in force", Role: row.Viewer, Ask: row.Do(d.status)},
		{
			Pattern: "GET /admin/overview", Summary: "The entries that need attention: gateways, budgets, refusals, idle money, drift", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.overview),
			Commands: []row.Command{{
				Use: "status", Short: "Show the entries that need attention: gateways, budgets, refusals, idle money, drift", Example: "tollgate status\ntollgate status --org acme -o json",
				Long: `Shows the gateways that share a Redis, with their versions and revisions; budgets
that are nearly used up; the refusals of today and their reasons; the cost of idle
resources; and where a ledger may differ from the platform.`,
			}},
		},
		{
			Pattern: "GET /admin/gateways", Summary: "The gateways that share a store", Role: row.Viewer, Ask: row.Do(d.gateways),
			Commands: []row.Command{{Use: "gateways", Short: "List the gateways that share a store, with version, revision, age and Envoys", Example: "tollgate gateways"}},
		},
		{
			Pattern: "GET /admin/orgs", Summary: "Organisations, their teams and policies", Role: row.Viewer, About: row.OfAsker, Ask: row.Do(d.orgs),
			Commands: []row.Command{{Use: "orgs", Example: "tollgate orgs"}},
		},
		{
			Pattern: "GET /admin/limits", Summary: "Windows in use of the quotas of an organisation", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.limits),
			Commands: []row.Command{{Use: "limits show ORG", Short: "Show the windows in use, the rest of each, and the holders of leases", Example: "tollgate limits show acme"}},
		},
		{
			Pattern: "POST /admin/limits/reset", Summary: "Empty the windows of a scope, or of the whole organisation", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(d.reset),
			Commands: []row.Command{{Use: "limits reset ORG", Example: "tollgate limits reset acme --scope key:ann"}},
		},
		{
			Pattern: "GET /admin/spend", Summary: "The ledger of an organisation", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.spend),
			Commands: []row.Command{{Use: "spend show ORG", Short: "Show budgets, spend, and the resources that count", Example: "tollgate spend show acme --team research --watch 5s"}},
		},
		{
			Pattern: "GET /admin/spend/resources", Summary: "Resources that count, in parts", Role: row.Viewer, About: row.OfOrg, Watched: true, Ask: row.Do(d.resources),
			Commands: []row.Command{{Use: "spend resources ORG", Short: "List the resources that count, the dearest first, in parts", Example: "tollgate spend resources acme --search train --sort oldest --limit 20"}},
		},
		{
			Pattern: "POST /admin/spend/reconcile", Summary: "Compare the ledger with the platform", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(d.reconcile),
			Commands: []row.Command{{Use: "spend reconcile ORG", Short: "Compare the ledger with the platform's resources, now", Example: "tollgate spend reconcile acme"}},
		},
		{Pattern: "POST /admin/spend/adopt", Summary: "Give a resource an owner", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(d.adopt)},
		{
			Pattern: "GET /admin/spend/holds", Summary: "Reservations of an organisation", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.holds),
			Commands: []row.Command{{Use: "spend holds ORG", Short: "Show reservations whose call has not ended, or whose end is not known", Example: "tollgate spend holds acme"}},
		},
		{
			Pattern: "POST /admin/spend/holds/release", Summary: "End a reservation", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(d.releaseHold),
			Commands: []row.Command{{Use: "spend holds release ORG ID", Short: "End a reservation whose call has left nothing", Example: "tollgate spend holds release acme 01M84TG8488HTPRJ2EYM7Q01FJ --reason 'the platform made nothing'"}},
		},
		{
			Pattern: "GET /admin/spend/history", Summary: "The costs of resources", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.costs),
			Commands: []row.Command{
				{Use: "spend history ORG", Short: "Show the costs of resources, by time and group", Example: "tollgate spend history acme --by team,gpu --bucket day --from 2026-11-01", Defaults: map[string]string{"by": "team"}},
				{Use: "spend top ORG", Short: "Show the highest costs", Example: "tollgate spend top acme --by resource,team --limit 5", Defaults: map[string]string{"by": "resource,team", "limit": "10"}, Fixed: map[string]string{"bucket": "total"}},
			},
		},
		{
			Pattern: "GET /admin/spend/forecast", Summary: "The likely spending of each scope", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.forecast),
			Commands: []row.Command{{Use: "spend forecast ORG", Short: "Estimate the spend by the end of the day and of the month", Example: "tollgate spend forecast acme --team research"}},
		},
		{
			Pattern: "GET /admin/spend/export", Summary: "The costs of resources, in the columns of FOCUS 1.2", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.export), Media: "text/csv; charset=utf-8",
			Commands: []row.Command{{Use: "spend export ORG", Short: "Write the costs of resources as CSV with the columns of FOCUS 1.2", Example: "tollgate spend export acme --from 2026-11-01 --to 2026-12-01 > november.csv"}},
		},
		{
			Pattern: "GET /admin/spend/idle", Summary: "Resources that cost money and do not work", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.idle),
			Commands: []row.Command{{Use: "spend idle ORG", Short: "Show resources that cost money and do not work, with owner, beginning, and cost a month", Example: "tollgate spend idle acme"}},
		},
		{
			Pattern: "POST /admin/spend/keep", Summary: "Leave an idle resource alone", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(d.keep),
			Commands: []row.Command{{Use: "spend keep ORG ID", Short: "Leave a resource alone for a time although it is idle", Example: "tollgate spend keep acme k2n5x8 --for 24h", Defaults: map[string]string{"for": "24h"}}},
		},
		{
			Pattern: "GET /admin/alerts", Summary: "The alerts that receivers were sent", Role: row.Viewer, About: row.OfOrg, Watched: true, Ask: row.Do(d.alerts),
			Commands: []row.Command{{
				Use: "alerts ORG", Short: "List the alerts that were sent, and whether a receiver took them", Example: "tollgate alerts acme --since 7d",
				Long: `Lists the alerts of an organisation, the newest first: budgets that reached a
threshold, unusual hours, idle resources, stops, changes without the gateway,
exceptions that end, and weekly reports. The latest 1,000 are kept, for 90 days.`,
			}},
		},
		{
			Pattern: "GET /admin/report", Summary: "The report of seven days on an organisation or a team", Role: row.Viewer, About: row.OfOrg, Watched: true, Ask: row.Do(d.report),
			Commands: []row.Command{{
				Use: "report ORG", Short: "Show the report of seven days on an organisation or a team", Example: "tollgate report acme\ntollgate report acme --team research --to 2026-11-23",
				Long: `Shows the report that alerts.report sends each week: the cost of seven days and of
the seven before, by team or key; the dearest resources; budgets as they are now;
idle money; and the refusals of policies.`,
			}},
		},
		{
			Pattern: "GET /admin/exceptions", Summary: "Exceptions that end at a time", Role: row.Viewer, About: row.OfOrg, Watched: true, Ask: row.Do(d.exceptions),
			Commands: []row.Command{{
				Use: "exceptions ORG", Short: "List exceptions with their ends: to policies, approvals, kept resources, brownouts", Example: "tollgate exceptions acme --within 7d",
				Long: `Lists the exceptions of an organisation that end, the next end first: those to
policies, grants that wait for their call, idle resources that their owners keep,
and scheduled brownouts of the retired interfaces.`,
			}},
		},
		{
			Pattern: "GET /admin/approvals", Summary: "Requests for approval", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.approvals), Answer: row.List("approvals", d.Shapes.Approval),
			Commands: []row.Command{{Use: "approvals list ORG", Short: "Show the requests that wait for an answer, and recent answers", Example: "tollgate approvals list acme"}},
		},
		{
			Pattern: "POST /admin/approvals/grant", Summary: "Let a refused call pass once", Role: row.Approver, About: row.OfOrg, Changes: true, Ask: row.Do(d.grant), Answer: row.TypeOf(d.Shapes.Approval),
			Commands: []row.Command{{
				Use: "approvals grant ORG ID", Short: "Let the caller make the refused call, once", Example: "tollgate approvals grant acme ap-01M84TG8488H --by ada --reason 'the demo on Monday' --for 2h",
				Long: `Lets the caller of a refused call make it once more: the very same call, for
at most a price, within a time. It lifts the rules that refused it and nothing
else: other policies, budgets and limits hold.`,
			}},
		},
		{
			Pattern: "POST /admin/approvals/deny", Summary: "Deny a request for approval", Role: row.Approver, About: row.OfOrg, Changes: true, Ask: row.Do(d.deny), Answer: row.TypeOf(d.Shapes.Approval),
			Commands: []row.Command{{Use: "approvals deny ORG ID", Short: "Refuse a request, or take back a grant that was not used", Example: "tollgate approvals deny acme ap-01M84TG8488H --by ada --reason 'one is enough'"}},
		},
		{Pattern: "GET /admin/keys", Summary: "Keys of an organisation, those of the configuration among them", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.keys)},
		{Pattern: "POST /admin/keys/create", Summary: "Make a key", Role: row.Admin, About: row.OfOrg, Changes: true, Ask: row.Do(d.createKey), Status: http.StatusCreated, Answer: row.TypeOf(d.Shapes.Made), Fails: ofKeys()},
		{Pattern: "POST /admin/keys/rotate", Summary: "Give a key another secret", Role: row.Admin, About: row.OfOrg, Changes: true, Ask: row.Do(d.rotateKey), Answer: row.TypeOf(d.Shapes.Made), Fails: ofKeys()},
		{
			Pattern: "POST /admin/keys/revoke", Summary: "Withdraw a key", Role: row.Admin, About: row.OfOrg, Changes: true, Ask: row.Do(d.revokeKey), Fails: ofKeys(),
			Commands: []row.Command{{Use: "keys revoke ORG/KEY", Short: "Withdraw a key that was made at run time, and end its streams", Example: "tollgate keys revoke acme/batch"}},
		},
		{
			Pattern: "GET /admin/tokens/revoked", Summary: "Tokens of issuers that are revoked", Role: row.Viewer, Ask: row.Do(d.revokedTokens),
			Commands: []row.Command{{Use: "tokens list", Short: "List revoked tokens, until they are forgotten", Example: "tollgate tokens list"}},
		},
		{
			Pattern: "POST /admin/tokens/revoke", Summary: "Revoke a token of an issuer, or those of a subject that were issued until now", Role: row.Admin, Changes: true, Ask: row.Do(d.revokeToken), Fails: []int{http.StatusNotFound, http.StatusConflict},
			Commands: []row.Command{{
				Use: "tokens revoke ISSUER", Short: "Revoke a token, or all that a subject was issued until now, and end their streams",
				Example: "tollgate tokens revoke corp --id 6f1c9a\ntollgate tokens revoke corp --subject ann@acme.example",
				Long: `Revokes a token of an issuer, or all that a subject was issued until now: at the
gateway that is asked at once, at all others within two seconds. The issuer is named by
its id in the configuration, or by its URL. A subject that can still get tokens from its
issuer is accepted again with a new one: to keep it out, lock it there.`,
			}},
		},
		{
			Pattern: "GET /admin/legacy", Summary: "The callers of the retired interfaces", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.legacy),
			Commands: []row.Command{{
				Use: "migrate report", Short: "List the callers of v1 and GraphQL, how often they call, and the v2 operation to call instead", Example: "tollgate migrate report --org acme -o csv",
				Long: `Lists the remaining callers of the retired interfaces at a running gateway: one line
for each key, program and operation, with the v2 operation that takes its place and
the fields v2 has no place for. A GraphQL document counts for each of its root fields.`,
			}},
		},
		{
			Pattern: "GET /admin/envoy", Summary: "Groups of Envoys, and the Envoys connected to this gateway", Role: row.Viewer, Ask: row.Do(d.envoys),
			Commands: []row.Command{{
				Use: "envoy status", Short: "Show the groups of Envoys, those connected to a gateway, and the resources they refused", Example: "tollgate envoy status",
				Long: `Shows each group of Envoys, with how many are connected to all gateways and to
this one, and the resources that an Envoy refused and none has taken since; then the
Envoys that are connected to this gateway, with the versions that they have.`,
			}},
		},
		{Pattern: "GET /admin/envoy/snapshot", Summary: "The resources that a group of Envoys is served", Role: row.Viewer, Ask: row.Do(d.envoySnapshot)},
		{
			Pattern: "GET /admin/decisions", Summary: "The latest exchanges", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.decisions), Answer: row.List("decisions", d.Shapes.Summary, "incomplete", "next"),
			Commands: []row.Command{{
				Use: "decisions", Short: "List decisions, of any gateway", Example: "tollgate decisions --org acme --team research --refused --since 24h",
				Long: `Lists the latest exchanges, newest first: those of the gateway that is asked, and
of all that share its Redis those that were refused, warned of or excepted, or
changed something (decisions.shared). "tollgate explain ID" tells how each came about.`,
			}},
		},
		{Pattern: "GET /admin/decisions/stream", Summary: "Decisions as they are made, as server-sent events", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.stream), Media: "text/event-stream"},
		{
			Pattern: "GET /admin/policies/counts", Summary: "The number of calls by policy and verdict", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.counts),
			Commands: []row.Command{{
				Use: "policy counts ORG", Short: "Show on how many calls policies denied, warned, or would have denied", Example: "tollgate policy counts acme --since 7d\ntollgate policy counts acme --policy gpu_count --verdict 'would deny' --bucket hour",
				Long: `Shows on how many calls each policy denied, warned, would have denied (mode shadow),
was lifted by an exception or changed something, by team: so you see the effect of a
policy before you enforce it. Counts are kept for 30 days, by whole hours.`,
			}},
		},
		{
			Pattern: "POST /admin/policies/replay", Summary: "The decisions that other policies would have made on recorded calls", Watched: true, Role: row.Admin, About: row.OfOrg, Ask: row.Do(d.replay),
			Body: reflect.TypeFor[Draft](), Answer: row.TypeOf(d.Shapes.Replayed), Fails: ofDrafts(),
		},
		{
			Pattern: "POST /admin/policies/try", Summary: "The verdict of a policy that is not in force on one call", Watched: true, Role: row.Admin, About: row.OfOrg, Ask: row.Do(d.try),
			Body: reflect.TypeFor[Trial](), Fails: ofDrafts(),
		},
		{Pattern: "GET /admin/decisions/log", Summary: "The decision log of this gateway, an event per line", Watched: true, Role: row.Operator, About: row.OfOrg, Ask: row.Do(d.decisionLog), Media: "application/x-ndjson", Fails: []int{http.StatusConflict}},
		{Pattern: "GET /admin/decisions/{id}", Summary: "The course of an exchange, stage by stage", Watched: true, Role: row.Viewer, About: row.OfAsker, Ask: row.Do(d.decision), Answer: row.TypeOf(d.Shapes.Report), Fails: []int{http.StatusNotFound}},
		{Pattern: "POST /admin/explain", Summary: "The course that a request would take", Role: row.Viewer, About: row.OfAsker, Ask: row.Do(d.explain), Body: reflect.TypeFor[question](), Answer: row.TypeOf(d.Shapes.Report), Fails: []int{http.StatusInternalServerError}},
		{Pattern: "GET /admin/audit", Summary: "The resources of an organisation, judged by its policies", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.audit), Answer: row.TypeOf(d.Shapes.Audit), Fails: []int{http.StatusBadGateway}},
		{
			Pattern: "GET /admin/audit/log", Summary: "Changes, with their authors and results: the audit log of this gateway", Watched: true, Role: row.Operator, About: row.OfOrg, Ask: row.Do(d.auditLog), Fails: []int{http.StatusConflict},
			Commands: []row.Command{{
				Use: "audit list", Short: "List changes, with their authors and results", Example: "tollgate audit list --org acme --since 24h\ntollgate audit list --by ada --operation 'POST /admin/keys/revoke'",
				Long: `Lists the audit log of the gateway that is asked, newest first, a line for each
change with its end, through rotated files. A list reads 8 MiB of the log at most;
"--before" with the number that it names goes on. "--reads" lists reads of
records of callers instead. "tollgate audit verify" holds the chain of the files.`,
			}},
		},
		{
			Pattern: "GET /admin/config", Summary: "The configuration in force as YAML, without secrets", Role: row.Admin, About: row.OfOrg, Ask: row.Do(d.inForce),
			Commands: []row.Command{{
				Use: "config show", Short: "Show the configuration in force as YAML, without secrets", Example: "tollgate config show\ntollgate config show --org acme",
				Long: `Shows the configuration that the gateway works by, with its defaults, its revision
and when it was loaded. Secrets show where they come from; the digests of keys and
tokens are masked. With --org it is the section of the organisation.`,
			}},
		},
		{
			Pattern: "GET /admin/config/revisions", Summary: "Configurations that were in force", Role: row.Admin, Ask: row.Do(d.revisions),
			Commands: []row.Command{{
				Use: "config revisions", Short: "List the configurations that were in force, of all gateways", Example: "tollgate config revisions",
				Long: `Lists the configurations that were in force at any gateway that shares the store,
the latest first. The latest 50 are kept for a year, without secrets.`,
			}},
		},
		{
			Pattern: "GET /admin/config/diff", Summary: "The differences between the configuration in force and another", Role: row.Admin, About: row.OfOrg, Ask: row.Do(d.configDiff), Fails: []int{http.StatusNotFound, http.StatusConflict},
			Commands: []row.Command{{
				Use: "config diff", Short: "Compare the configuration in force with the revision before, another one, or the file", Example: "tollgate config diff\ntollgate config diff --with file",
				Long: `Compares the configuration in force with the revision before it, with any that
"tollgate config revisions" lists, or with the file as it is now at the gateway that
is asked: so you see what a reload changes, or the fault that prevents it.`,
			}},
		},
		{Pattern: "GET /debug/pprof/", Summary: "Profiles of the process", Role: row.Operator, Handle: pprof.Index, Media: "text/html"},
		{Pattern: "GET /debug/pprof/profile", Summary: "A profile of the processors", Role: row.Operator, Handle: pprof.Profile, Params: seconds, Media: profile},
		{Pattern: "GET /debug/pprof/symbol", Summary: "Names of program counters", Role: row.Operator, Handle: pprof.Symbol, Media: "text/plain"},
		{Pattern: "GET /debug/pprof/trace", Summary: "A trace of the execution", Role: row.Operator, Handle: pprof.Trace, Params: seconds, Media: profile},
	}
}

// ofKeys are the statuses of refused changes of keys.
func ofKeys() []int {
	return []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity}
}

// ofDrafts are the statuses of drafts that cannot be tried: there is no log, or it took too much time or memory.
func ofDrafts() []int { return []int{http.StatusConflict, http.StatusUnprocessableEntity} }

func live(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, probed{Status: "live"}) }

func (d Deps) metrics(w http.ResponseWriter, r *http.Request) { d.Metrics.ServeHTTP(w, r) }
