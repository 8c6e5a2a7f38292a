package callers

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Key is a key as it is listed.
type Key struct {
	settings.KeyRecord

	// Today and ThisMonth are the costs of its resources, in USD, absent for an organisation without budgets and for a key that has spent
	// nothing.
	Today     string `json:"today,omitempty"`
	ThisMonth string `json:"thisMonth,omitempty"`
}

// List is a part of a list of keys.
type List struct {
	Keys []Key `json:"keys"`
	// All is the number of keys that are selected.
	All int `json:"all"`
	// Next is the parameter cursor of the next list, absent behind the last.
	Next string `json:"next,omitempty"`
}

// listedKeys selects keys.
type listedKeys struct {
	row.Scoped
	row.Paging

	Search string   `query:"search" max:"200" doc:"only keys with this text in their id, team or owner"`
	Team   row.Team `query:"team" doc:"only keys of this team"`
	State  string   `query:"state" oneof:"in force,expired,revoked,not in force" doc:"only keys in this state"`
	Sort   string   `query:"sort" oneof:"made,id,used,unused,expires,spend" default:"made" doc:"made is those made at run time and then those of the configuration, used the latest use first, unused the longest without one, expires the next end, spend the dearest this month"`
}

func (p *listedKeys) selects(k *Key) bool {
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(p.Search)) }
	return (p.Team == "" || string(p.Team) == k.Team) && (p.State == "" || k.State == p.State || p.State == "not in force" && strings.HasPrefix(k.State, "not in force")) &&
		(p.Search == "" || has(k.ID) || has(k.Team) || has(k.Owner))
}

// compare orders keys as they are asked for.
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
		return cmp.Compare(row.Decimal(b.ThisMonth), row.Decimal(a.ThisMonth))
	}
	return 0
}

// Operators shows the keys of organisations to operators, and changes those made at run time. The zero value describes its rows.
type Operators struct {
	Keys *Keys
	// Ledger has the costs of keys.
	Ledger *ledger.Ledger
}

// Rows are the questions of operators about keys and revoked tokens, and their changes.
func (o Operators) Rows() []row.Row {
	var revoked *Tokens // describes its rows
	if o.Keys != nil {
		revoked = o.Keys.Tokens
	}
	return append([]row.Row{
		{Pattern: "GET /admin/keys", Summary: "Keys of an organisation, those of the configuration among them", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(o.list)},
		{Pattern: "POST /admin/keys/create", Summary: "Make a key", Role: row.Admin, About: row.OfOrg, Changes: true, Ask: row.Do(o.create), Status: http.StatusCreated, Fails: keyErrorStatuses()},
		{Pattern: "POST /admin/keys/rotate", Summary: "Give a key another secret", Role: row.Admin, About: row.OfOrg, Changes: true, Ask: row.Do(o.rotate), Fails: keyErrorStatuses()},
		{
			Pattern: "POST /admin/keys/revoke", Summary: "Withdraw a key", Role: row.Admin, About: row.OfOrg, Changes: true, Ask: row.Do(o.revoke), Fails: keyErrorStatuses(),
			Commands: []row.Command{{Use: "keys revoke ORG/KEY", Short: "Withdraw a key that was made at run time, and end its streams", Example: "tollgate keys revoke acme/batch"}},
		},
	}, revoked.Rows()...)
}

// list returns a part of the keys of an organisation, those made at run time first.
func (o Operators) list(ctx context.Context, _ row.Scope, p listedKeys) (*List, error) {
	org := string(p.Org)
	if o.Keys.org(org) == nil {
		return nil, row.ErrNoOrg
	}
	used := o.Keys.keyring.lastUsed(ctx, org)
	return p.list(append(o.Keys.listKeys(org, used), o.Keys.configuredKeys(org, used)...), o.spent(ctx, org))
}

// spent returns the balances of keys, by ID. It is empty for an organisation without budgets, and while the ledger does not answer.
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

// list returns the part of keys that is asked for, with what they have spent.
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
	out.Keys, out.Next, err = row.Page(list, &p.Paging, func(k *Key) string { return k.By + " " + k.ID })
	return out, err
}

// createParams is a key to be made. The whole specification is a parameter, so that it is recorded with the intent.
type createParams struct {
	row.Scoped

	Spec string `query:"spec,required" doc:"a key as under keys of the configuration, in JSON"`
}

// create makes a key, and returns it with its secret unless only its digest is known.
func (o Operators) create(ctx context.Context, s row.Scope, p createParams) (*KeyResponse, error) {
	org := string(p.Org)
	if o.Keys.org(org) == nil {
		return nil, row.ErrNoOrg
	}
	k, err := parseKey(p.Spec)
	if err != nil {
		return nil, refused(err)
	}
	answer, err := o.Keys.createKey(ctx, org, k, s.Author())
	return answer, refused(err)
}

// keyParams names a key.
type keyParams struct {
	row.Scoped

	ID string `query:"id,required" doc:"id of a key"`
}

// rotateParams is a key that gets another secret.
type rotateParams struct {
	keyParams

	Overlap row.Span `query:"overlap,required" doc:"how long those it has are accepted, such as 24h"`
}

// rotate gives a key another secret, which it returns. The secrets that the key has are accepted for the overlap.
func (o Operators) rotate(ctx context.Context, _ row.Scope, p rotateParams) (*KeyResponse, error) {
	if p.Overlap < 0 {
		return nil, row.Bad("overlap", "must be at least 0s")
	}
	m, err := o.find(ctx, p.keyParams)
	if err != nil {
		return nil, err
	}
	answer, err := o.Keys.rotateKey(ctx, string(p.Org), m, time.Duration(p.Overlap))
	return answer, refused(err)
}

// revoke withdraws a key.
func (o Operators) revoke(ctx context.Context, s row.Scope, p keyParams) (none row.Nothing, err error) {
	m, err := o.find(ctx, p)
	if err != nil {
		return none, err
	}
	return none, refused(o.Keys.revokeKey(ctx, string(p.Org), m, s.Author()))
}

func (o Operators) find(ctx context.Context, p keyParams) (runtimeKey, error) {
	if o.Keys.org(string(p.Org)) == nil {
		return runtimeKey{}, row.ErrNoOrg
	}
	m, err := o.Keys.madeKey(ctx, string(p.Org), p.ID)
	return m, refused(err)
}

// keyErrorStatuses are the statuses of refused changes of keys.
func keyErrorStatuses() []int {
	return []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity}
}
