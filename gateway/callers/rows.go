package callers

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Key is a key as listed by the admin API, with its costs.
type Key struct {
	settings.KeyRecord

	// Today and ThisMonth are the costs of the key's resources in USD. They are absent for an organisation without
	// budgets and for a key without costs.
	Today     string `json:"today,omitempty"`
	ThisMonth string `json:"thisMonth,omitempty"`
}

// List is one page of a list of keys.
type List struct {
	Keys []Key `json:"keys"`
	// All is the number of keys that match the filters.
	All int `json:"all"`
	// Next is the value of the parameter cursor for the next page. It is absent on the last page.
	Next string `json:"next,omitempty"`
}

// listedKeys holds the parameters of a list of keys.
type listedKeys struct {
	adminapi.OrgParam
	adminapi.Paging

	Search string        `query:"search" max:"200" doc:"only keys whose id, team or owner contains this text"`
	Team   adminapi.Team `query:"team" doc:"only keys of this team"`
	State  string        `query:"state" oneof:"in force,expired,revoked,not in force" doc:"only keys in this state"`
	Sort   string        `query:"sort" oneof:"made,id,used,unused,expires,spend" default:"made" doc:"sort order: made (keys created at run time first), used (most recently used first), unused (least recently used first), expires (earliest expiry first) or spend (highest cost of this month first)"`
}

func (p *listedKeys) selects(k *Key) bool {
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(p.Search)) }
	return (p.Team == "" || string(p.Team) == k.Team) &&
		(p.State == "" || k.State == p.State || p.State == "not in force" && strings.HasPrefix(k.State, "not in force")) &&
		(p.Search == "" || has(k.ID) || has(k.Team) || has(k.Owner))
}

// compare orders keys by the parameter sort.
func (p *listedKeys) compare(a, b *Key) int {
	switch p.Sort {
	case "id":
		return cmp.Compare(a.ID, b.ID)
	case "used":
		return b.Used.Compare(a.Used)
	case "unused":
		return a.Used.Compare(b.Used)
	case "expires":
		if a.Expires.IsZero() != b.Expires.IsZero() {
			return map[bool]int{true: 1, false: -1}[a.Expires.IsZero()]
		}
		return a.Expires.Compare(b.Expires)
	case "spend":
		return cmp.Compare(adminapi.Decimal(b.ThisMonth), adminapi.Decimal(a.ThisMonth))
	}
	return 0
}

// Operators implements the endpoints of the admin API with which operators manage keys. The endpoints of a zero Operators can be listed for
// the API reference, but cannot be called.
type Operators struct {
	Keys *Keys
	// Ledger holds the costs of keys.
	Ledger *ledger.Ledger
}

// Endpoints returns the admin API endpoints for keys and revoked tokens.
func (o Operators) Endpoints() []adminapi.Endpoint {
	var revoked *Tokens // nil lists the rows
	if o.Keys != nil {
		revoked = o.Keys.Tokens
	}
	return append([]adminapi.Endpoint{
		{
			Pattern: "GET /admin/keys", Summary: "List the keys of an organisation, including configured keys",
			AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(o.list),
		},
		{
			Pattern: "POST /admin/keys/create", Summary: "Create a key", Role: adminapi.Admin, Subject: adminapi.SubjectOrg, Mutates: true,
			Handler: adminapi.HandlerFor(o.create), Status: http.StatusCreated, ErrorStatuses: keyErrorStatuses(),
		},
		{
			Pattern: "POST /admin/keys/rotate", Summary: "Rotate the secret of a key", Role: adminapi.Admin, Subject: adminapi.SubjectOrg,
			Mutates: true, Handler: adminapi.HandlerFor(o.rotate), ErrorStatuses: keyErrorStatuses(),
		},
		{
			Pattern: "POST /admin/keys/revoke", Summary: "Revoke a key", Role: adminapi.Admin, Subject: adminapi.SubjectOrg, Mutates: true,
			Handler: adminapi.HandlerFor(o.revoke), ErrorStatuses: keyErrorStatuses(),
			Commands: []adminapi.Command{{
				Use: "keys revoke ORG/KEY", Short: "Revoke a key that was created at run time, and close its streams",
				Example: "tollgate keys revoke acme/batch",
			}},
		},
	}, revoked.Endpoints()...)
}

// list returns a page of the keys of an organisation, beginning with those created at run time.
func (o Operators) list(ctx context.Context, _ adminapi.Principal, p listedKeys) (*List, error) {
	org := string(p.Org)
	if o.Keys.org(org) == nil {
		return nil, adminapi.ErrUnknownOrg
	}
	used := o.Keys.keyring.lastUsed(ctx, org)
	return p.list(append(o.Keys.listKeys(org, used), o.Keys.configuredKeys(org, used)...), o.spent(ctx, org))
}

// spent returns the balances of keys by id. It is empty for an organisation without budgets, and while the ledger is
// unavailable.
func (o Operators) spent(ctx context.Context, org string) map[string]*ledger.Balance {
	spent := make(map[string]*ledger.Balance)
	if !HasLedger(o.Keys.org(org)) {
		return spent
	}
	state, err := o.Ledger.Store.Show(ctx, org)
	if err != nil {
		return spent
	}
	for i := range state.Balances {
		if b := &state.Balances[i]; b.Scope.Kind == ledger.KindKey {
			spent[b.Scope.ID] = b
		}
	}
	return spent
}

// list returns a page of the keys that match the filters, with their costs.
func (p *listedKeys) list(records []settings.KeyRecord, spent map[string]*ledger.Balance) (out *List, err error) {
	var list []Key
	for i := range records {
		k := Key{KeyRecord: records[i]}
		if b := spent[k.ID]; b != nil {
			k.Today, k.ThisMonth = ledger.AmountText(ledger.PerDay, b.Day), ledger.AmountText(ledger.PerMonth, b.Month)
		}
		if p.selects(&k) {
			list = append(list, k)
		}
	}
	slices.SortStableFunc(list, func(a, b Key) int { return p.compare(&a, &b) })
	out = &List{All: len(list)}
	out.Keys, out.Next, err = adminapi.Page(list, &p.Paging, func(k *Key) string { return k.By + " " + k.ID })
	return out, err
}

// createParams holds the parameters of creating a key. The whole specification is one parameter, so that it is recorded
// with the intent in the audit log.
type createParams struct {
	adminapi.OrgParam

	Spec string `query:"spec,required" doc:"key specification in JSON, with the same fields as a key in the configuration"`
}

// create creates a key. The response contains the secret unless the specification has a digest.
func (o Operators) create(ctx context.Context, s adminapi.Principal, p createParams) (*KeyResponse, error) {
	org := string(p.Org)
	k, err := parseKey(p.Spec)
	if err != nil {
		return nil, refused(err)
	}
	answer, err := o.Keys.createKey(ctx, org, k, s.Name)
	return answer, refused(err)
}

// keyParams identifies a key.
type keyParams struct {
	adminapi.OrgParam

	ID string `query:"id,required" doc:"id of the key"`
}

// rotateParams holds the parameters of rotating a key.
type rotateParams struct {
	keyParams

	Overlap adminapi.Duration `query:"overlap,required" doc:"time for which existing secrets remain valid after the rotation, such as 24h"`
}

// rotate gives a key a new secret, which the response contains. The existing secrets remain valid for the overlap.
func (o Operators) rotate(ctx context.Context, _ adminapi.Principal, p rotateParams) (*KeyResponse, error) {
	if p.Overlap < 0 {
		return nil, adminapi.BadParam("overlap", "must be at least 0s")
	}
	m, err := o.find(ctx, p.keyParams)
	if err != nil {
		return nil, err
	}
	answer, err := o.Keys.rotateKey(ctx, string(p.Org), m, time.Duration(p.Overlap))
	return answer, refused(err)
}

// revoke revokes a key. It tries again if the key changes meanwhile, so that rotations cannot delay the revocation.
func (o Operators) revoke(ctx context.Context, s adminapi.Principal, p keyParams) (none adminapi.NoContent, _ error) {
	for {
		m, err := o.find(ctx, p)
		if err != nil {
			return none, err
		}
		if err = o.Keys.revokeKey(ctx, string(p.Org), m, s.Name); !errors.Is(err, errKeyChanged) {
			return none, refused(err)
		}
	}
}

func (o Operators) find(ctx context.Context, p keyParams) (*runtimeKey, error) {
	m, err := o.Keys.madeKey(ctx, string(p.Org), p.ID)
	return m, refused(err)
}

// keyErrorStatuses returns the statuses of refused changes of keys.
func keyErrorStatuses() []int {
	return []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity}
}
