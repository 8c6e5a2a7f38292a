package money

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// names holds digests of each organisation's teams and keys as of the latest comparison with its ledger.
type names struct {
	mu   sync.Mutex
	seed maphash.Seed
	seen map[string]uint64
}

// changed reports whether an organisation's teams and keys have changed since the last call.
func (n *names) changed(o *settings.Org) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen == nil {
		n.seed, n.seen = maphash.MakeSeed(), make(map[string]uint64)
	}
	var h maphash.Hash
	h.SetSeed(n.seed)
	for _, t := range o.Teams {
		_, _ = h.WriteString(t.ID + "\n" + t.Former + "\n") // writing to a hash cannot fail
	}
	for i := range o.Keys {
		_, _ = h.WriteString(o.Keys[i].ID + " " + o.Keys[i].Team + " " + o.Keys[i].MovedFrom + "\n")
	}
	sum, known := n.seen[o.ID]
	n.seen[o.ID] = h.Sum64()
	return !known || sum != n.seen[o.ID]
}

// CheckOwners compares the ledgers of organisations with their configured teams and keys if these have changed. It applies the configured
// moves, and logs a warning for each team or key that has spending but is not configured, because no team budget includes that spending.
func (m *Money) CheckOwners(ctx context.Context) {
	orgs := m.deps.Config().Orgs
	for i := range orgs {
		o := m.org(orgs[i].ID) // includes keys created at run time
		plan := m.deps.Plan(orgs[i].ID)
		if o == nil || plan == nil || !m.names.changed(o) {
			continue
		}
		if len(plan.Moves) > 0 {
			m.Loop.Kick(o.ID)
		}
		state, err := m.deps.Accounts.Show(ctx, o.ID)
		if err != nil || ctx.Err() != nil {
			continue // failures of the store are reported elsewhere
		}
		for _, r := range state.Orphans(known(o)) {
			advice := "tollgate spend adopt " + o.ID + " --from-team " + r.Owner.Team + " --to-team TEAM"
			if r.Owner.Key != "" {
				advice += " --key " + r.Owner.Key
			}
			m.deps.Logger.WarnContext(ctx, "spending is recorded for a team or key that is not configured; no team budget includes this spending",
				"org", o.ID, "team", r.Owner.Team, "key", r.Owner.Key,
				"resources", r.Resources, "usd_per_hour", usd(r.Burn), "today_usd", usd(r.Day), "month_usd", usd(r.Month), "advice",
				"renamed_from, moved_from, or "+advice)
		}
	}
}

func usd(micro int64) string { return catalog.Money(micro).String() }

// known returns a function that reports whether the configuration contains an owner, which is a team or a key in a team. A key that is not
// configured, such as a revoked key or the subject of a token, counts as contained if its team is configured.
func known(o *settings.Org) func(ledger.Owner) bool {
	teams, keys := make(map[string]bool), make(map[string]string)
	for _, t := range o.Teams {
		teams[t.ID], teams[t.Former] = true, true
	}
	for k := range o.AllKeys() {
		if keys[k.ID] = k.Team; k.MovedFrom != "" {
			keys[k.MovedFrom+"\n"+k.ID] = k.Team
		}
	}
	return func(owner ledger.Owner) bool {
		if owner.Key == "" {
			return teams[owner.Team]
		}
		team, configured := keys[owner.Key]
		_, moves := keys[owner.Team+"\n"+owner.Key]
		return teams[owner.Team] && (!configured || team == owner.Team || moves)
	}
}

// adoptingTeam holds the parameters for moving the resources and accrued costs of a team.
type adoptingTeam struct {
	adminapi.OrgParam

	From adminapi.PastTeam `query:"from_team,required" doc:"id of the team to move from, which can be missing from the configuration"`
	To   adminapi.Team     `query:"to_team,required" doc:"id of the team to move to"`
	Key  string            `query:"key" doc:"move only the resources and accrued costs of this key"`
}

// adoptTeam moves the resources and accrued costs of a team, or of one key in a team, to another team.
func (m *Money) adoptTeam(ctx context.Context, _ adminapi.Principal, p adoptingTeam) (*AdoptedTeam, error) {
	org, from, to, key := string(p.Org), string(p.From), string(p.To), p.Key
	o, err := m.check(org)
	if err != nil {
		return nil, err
	}
	switch {
	case from == to:
		return nil, adminapi.BadRequestError{Reason: "from_team and to_team are the same team"}
	case !slices.ContainsFunc(o.Teams, func(t settings.Team) bool { return t.ID == to }):
		return nil, adminapi.BadRequestError{Reason: fmt.Sprintf("team %q is not configured", to)}
	case strings.ContainsAny(from+key, "\n"):
		return nil, adminapi.BadRequestError{Reason: "team and key must not contain line breaks"}
	}
	c, err := m.Loop.Move(ctx, org, ledger.Move{From: from, To: to, Key: key, Again: true})
	if err != nil {
		return nil, err
	}
	return &AdoptedTeam{From: from, To: to, Key: key, Resources: c.Resources, Pending: c.Pending, Day: usd(c.Day), Month: usd(c.Month)}, nil
}
