package admin

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// Keys makes and withdraws keys at run time. Its errors are row.ErrNoOrg, a RefusedError or
// those of the store.
type Keys interface {
	// List returns the keys of an organisation, those made at run time first.
	List(ctx context.Context, org string) ([]settings.KeyRecord, error)
	// Create makes a key of a specification in JSON, which has the members of a key in
	// the configuration, and returns it with its secret, unless that is known by its
	// digest alone. by names the maker.
	Create(ctx context.Context, org, spec, by string) (any, error)
	// Rotate gives a key another secret, which it returns; those it has are accepted for
	// the overlap.
	Rotate(ctx context.Context, org, id string, overlap time.Duration) (any, error)
	// Revoke withdraws a key; by names the revoker.
	Revoke(ctx context.Context, org, id, by string) error
}

// Spend shows ledgers, as money.Money does.
type Spend interface {
	Show(ctx context.Context, org string) (*money.Ledger, error)
}

// Key is a key as it is listed.
type Key struct {
	settings.KeyRecord

	// Today and ThisMonth are the costs of its resources, in USD, absent for an organisation without budgets and for a key that has spent
	// nothing.
	Today     string `json:"today,omitempty"`
	ThisMonth string `json:"thisMonth,omitempty"`
}

// KeyList is keys as they are answered.
type KeyList struct {
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

func (d Deps) keyRows() []row.Row {
	return []row.Row{
		{Pattern: "GET /admin/keys", Summary: "Keys of an organisation, those of the configuration among them", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.keys)},
		{Pattern: "POST /admin/keys/create", Summary: "Make a key", Role: row.Admin, About: row.OfOrg, Changes: true, Ask: row.Do(d.createKey), Status: http.StatusCreated, Answer: row.TypeOf(d.Shapes.Made), Fails: ofKeys()},
		{Pattern: "POST /admin/keys/rotate", Summary: "Give a key another secret", Role: row.Admin, About: row.OfOrg, Changes: true, Ask: row.Do(d.rotateKey), Answer: row.TypeOf(d.Shapes.Made), Fails: ofKeys()},
		{
			Pattern: "POST /admin/keys/revoke", Summary: "Withdraw a key", Role: row.Admin, About: row.OfOrg, Changes: true, Ask: row.Do(d.revokeKey), Fails: ofKeys(),
			Commands: []row.Command{{Use: "keys revoke ORG/KEY", Short: "Withdraw a key that was made at run time, and end its streams", Example: "tollgate keys revoke acme/batch"}},
		},
	}
}

func (d Deps) keys(ctx context.Context, _ row.Scope, p listedKeys) (*KeyList, error) {
	records, err := d.Keys.List(ctx, string(p.Org))
	if err != nil {
		return nil, err
	}
	spent := make(map[string]*money.Balance)
	if l, err := d.Spend.Show(ctx, string(p.Org)); err == nil { // without it, the keys are told all the same
		for i := range l.Scopes {
			spent[l.Scopes[i].Scope] = &l.Scopes[i]
		}
	}
	var list []Key
	for i := range records {
		k := Key{KeyRecord: records[i]}
		if b := spent["key "+k.ID]; b != nil {
			k.Today, k.ThisMonth = b.Day, b.Month
		}
		if p.selects(&k) {
			list = append(list, k)
		}
	}
	slices.SortStableFunc(list, func(a, b Key) int { return p.compare(&a, &b) })
	out := &KeyList{All: len(list)}
	out.Keys, out.Next, err = row.Page(list, &p.Paging, func(k *Key) string { return k.By + " " + k.ID })
	return out, err
}

// made is a key to be made. The whole specification is a parameter, so that it is recorded with the intent.
type made struct {
	row.Scoped

	Spec string `query:"spec,required" doc:"a key as under keys of the configuration, in JSON"`
}

func (d Deps) createKey(ctx context.Context, s row.Scope, p made) (any, error) {
	return d.Keys.Create(ctx, string(p.Org), p.Spec, s.Author())
}

// keyed names a key.
type keyed struct {
	row.Scoped

	ID string `query:"id,required" doc:"id of a key"`
}

// rotated is a key that gets another secret.
type rotated struct {
	keyed

	Overlap row.Span `query:"overlap,required" doc:"how long those it has are accepted, such as 24h"`
}

func (d Deps) rotateKey(ctx context.Context, _ row.Scope, p rotated) (any, error) {
	if p.Overlap < 0 {
		return nil, row.Bad("overlap", "must be at least 0s")
	}
	return d.Keys.Rotate(ctx, string(p.Org), p.ID, time.Duration(p.Overlap))
}

func (d Deps) revokeKey(ctx context.Context, s row.Scope, p keyed) (row.Nothing, error) {
	return row.Nothing{}, d.Keys.Revoke(ctx, string(p.Org), p.ID, s.Author())
}

// ofKeys are the statuses of refused changes of keys.
func ofKeys() []int {
	return []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity}
}
