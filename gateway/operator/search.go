package operator

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Search finds resources, keys, teams, decisions and policies by ID or name.
type Search struct {
	*view.Current
	// Show returns the ledger of an organisation; Search does not use its Scopes. Costs returns the costs of resources, including deleted
	// resources. Both return an [adminapi.BadRequestError] for an organisation without budgets.
	Show  func(ctx context.Context, org string) (*money.Ledger, error)
	Costs func(ctx context.Context, org string, q *ledger.Query) (*money.Costs, error)
	// Decision returns the decision with the given ID. An unknown ID results in an [adminapi.RefusedError] with status 404.
	Decision func(ctx context.Context, s adminapi.Principal, id string) (*explain.Report, error)
}

// SearchResults are the best matches of a search.
type SearchResults struct {
	Results []SearchResult `json:"results"`
	// All is the number of matches.
	All int `json:"all"`
	// Unknown names the kinds that could not be searched.
	Unknown []string `json:"unknown,omitempty"`
}

// SearchResult is one match of a search.
type SearchResult struct {
	// Kind is resource, key, team, decision or policy.
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	Org  string `json:"org"`
	Team string `json:"team,omitempty"`
	// Detail describes the match: the kind and GPU of a resource, the owner of a key, the operation and verdict of a decision, or the mode
	// of a policy.
	Detail string `json:"detail,omitempty"`

	rank int
}

// Kinds of matches. Equally good matches are listed in the order decision, resource, key, team, policy.
const (
	FoundResource = "resource"
	FoundKey      = "key"
	FoundTeam     = "team"
	FoundPolicy   = "policy"
	FoundDecision = "decision"
)

// searched holds the parameters of a search.
type searched struct {
	adminapi.OptionalOrg

	Text  string `query:"q,required" max:"200" doc:"part of an ID or name, or the complete ID of a decision"`
	Limit int    `query:"limit" min:"1" max:"100" default:"20" doc:"maximum number of matches"`
}

// Endpoints returns the admin API endpoint that searches resources, keys, teams, decisions and policies.
func (from Search) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{{
		Pattern: "GET /admin/search", Summary: "Resources, keys, teams, decisions and policies by ID or name",
		AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(from.search),
		Commands: []adminapi.Command{{
			Use: "search Q", Heading: "Operate", Short: "Find resources, keys, teams, decisions and policies by ID or name",
			Example: "tollgate search train\ntollgate search --org acme k2n5x8",
		}},
	}}
}

// matcher ranks names against a search text. text is in lower case; given is the original text.
type matcher struct{ text, given string }

// rank returns the best match among names: 3 for equality, 2 for a prefix, 1 for a substring, and 0 if no name matches.
func (m matcher) rank(names ...string) (best int) {
	for _, name := range names {
		name = strings.ToLower(name)
		switch {
		case name == m.text:
			best = 3
		case strings.HasPrefix(name, m.text):
			best = max(best, 2)
		case strings.Contains(name, m.text):
			best = max(best, 1)
		}
	}
	return best
}

// decisionID matches IDs of decisions, which are ULIDs.
var decisionID = regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`)

func (from Search) search(ctx context.Context, s adminapi.Principal, p searched) (*SearchResults, error) {
	ctx, cancel := context.WithTimeout(ctx, PartsTime)
	defer cancel()
	m := matcher{given: strings.TrimSpace(p.Text)}
	m.text = strings.ToLower(m.given)
	if m.text == "" {
		return nil, adminapi.BadParam("q", "is empty")
	}
	tenants := slices.DeleteFunc(slices.Clone(s.Visible()), func(t adminapi.Tenant) bool { return p.Org != "" && string(p.Org) != t.ID })
	parts := make([]SearchResults, len(tenants)+1)
	var reads []func()
	for i, t := range tenants {
		reads = append(reads, func() { parts[i] = from.org(ctx, s.Now, m, &t) })
	}
	if id := strings.ToUpper(m.given); decisionID.MatchString(id) {
		reads = append(reads, func() { parts[len(tenants)] = from.decision(ctx, s, id, string(p.Org)) })
	}
	concurrently(reads)
	out := &SearchResults{Results: []SearchResult{}}
	for i := range parts {
		out.Results, out.Unknown = append(out.Results, parts[i].Results...), append(out.Unknown, parts[i].Unknown...)
	}
	kinds := []string{FoundDecision, FoundResource, FoundKey, FoundTeam, FoundPolicy}
	slices.SortStableFunc(out.Results, func(a, b SearchResult) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
			cmp.Compare(a.Org, b.Org), cmp.Compare(a.ID, b.ID))
	})
	out.All = len(out.Results)
	out.Results = out.Results[:min(len(out.Results), p.Limit)]
	return out, nil
}

// org searches an organisation.
func (from Search) org(ctx context.Context, now time.Time, m matcher, t *adminapi.Tenant) (out SearchResults) {
	add := func(r SearchResult, rank int) {
		if rank > 0 {
			r.Org, r.rank = t.ID, rank
			out.Results = append(out.Results, r)
		}
	}
	for _, team := range t.Teams {
		add(SearchResult{Kind: FoundTeam, ID: team, Team: team}, m.rank(team))
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		if !slices.ContainsFunc(t.Entries[:i], func(earlier adminapi.Entry) bool { return earlier.Policy == e.Policy }) {
			add(SearchResult{Kind: FoundPolicy, ID: e.Policy, Detail: e.Conditions()}, m.rank(e.Policy))
		}
	}
	if o := from.Org(t.ID); o != nil {
		for k := range o.AllKeys() {
			add(SearchResult{Kind: FoundKey, ID: k.ID, Team: k.Team, Detail: k.Owner}, m.rank(k.ID, k.Owner))
		}
	}
	l, err := from.Show(ctx, t.ID)
	if err == nil {
		for i := range l.Resources {
			r := &l.Resources[i]
			add(SearchResult{Kind: FoundResource, ID: r.ID, Name: r.Name, Team: r.Team, Detail: strings.TrimSpace(r.Kind + " " + r.GPU)},
				m.rank(r.ID, r.Name))
		}
		if len(out.Results) == 0 { // the resource may have been deleted
			var costs *money.Costs
			if costs, err = from.Costs(ctx, t.ID, past(now)); err == nil {
				for i := range costs.Rows {
					c := &costs.Rows[i]
					add(SearchResult{
						Kind: FoundResource, ID: c.Resource, Name: c.Name, Team: c.Team,
						Detail: strings.TrimSpace("not running, " + c.Kind + " " + c.GPU),
					}, m.rank(c.Resource, c.Name))
				}
			}
		}
	}
	if _, off := errors.AsType[adminapi.BadRequestError](err); err != nil && !off {
		out.Unknown = append(out.Unknown, "resources of "+t.ID+": shared store unavailable")
	}
	return out
}

// past returns the query for the costs of all resources in the last 30 days.
func past(now time.Time) *ledger.Query {
	to := ledger.Daily.Start(now).AddDate(0, 0, 1)
	return &ledger.Query{
		From: to.AddDate(0, 0, -30), To: to, Bucket: ledger.Total, By: []ledger.Dimension{ledger.ByResource, ledger.ByTeam},
	}
}

// decision returns the decision with the given ID as the only match.
func (from Search) decision(ctx context.Context, s adminapi.Principal, id, org string) (out SearchResults) {
	x, err := from.Decision(ctx, s, id)
	if refused, isRefused := errors.AsType[adminapi.RefusedError](err); isRefused && refused.Status == http.StatusNotFound || x != nil &&
		org != "" && x.Caller.Org != org {
		return out
	}
	if err != nil {
		return SearchResults{Unknown: []string{"decisions: shared store unavailable"}}
	}
	return SearchResults{Results: []SearchResult{{
		Kind: FoundDecision, ID: x.DecisionID, Org: x.Caller.Org, Team: x.Caller.Team,
		Detail: x.Operation + ", " + string(x.Verdict), rank: 3,
	}}}
}
