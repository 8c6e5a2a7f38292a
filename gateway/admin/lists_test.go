package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// cabinet has many keys.
type cabinet struct{ admin.Keys }

func (cabinet) List(context.Context, string) ([]settings.KeyRecord, error) {
	var list []settings.KeyRecord
	for i := range 10_000 {
		list = append(list, settings.KeyRecord{ID: fmt.Sprintf("key-%04d", i), State: "in force", By: "ada", Used: time.Unix(int64(i), 0)})
	}
	return append(list, settings.KeyRecord{ID: "ann", Owner: "Ann of Research", State: "in force", By: "configuration", Expires: time.Unix(9, 0)}, settings.KeyRecord{ID: "old", State: "revoked", By: "bob"}), nil
}

// ledgers knows what one key has cost.
type ledgers struct{ admin.Spend }

func (ledgers) Show(context.Context, string) (*money.Ledger, error) {
	l := &money.Ledger{Scopes: []money.Balance{{Scope: "key key-0007", Day: "1", Month: "12.5"}, {Scope: "key ann", Day: "0", Month: "3"}}}
	return l, nil
}

// asked is a list as it is answered.
type asked struct {
	Keys []admin.Key
	All  int
	Next string
}

func list(t *testing.T, d listener, target string) (out asked) {
	t.Helper()
	w := get(d, target, "")
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 200 {
		t.Fatalf("%s: %d %s", target, w.Code, w.Body)
	}
	return out
}

// A long list is answered in parts, each entry once.
func TestListsInParts(t *testing.T) {
	d := deps("")
	d.Keys, d.Spend = cabinet{}, ledgers{}
	seen := make(map[string]int)
	parts := 0
	for cursor := ""; parts == 0 || cursor != ""; parts++ {
		l := list(t, d, "/admin/keys?org=acme&limit=1000&sort=used&cursor="+url.QueryEscape(cursor))
		for _, k := range l.Keys {
			seen[k.ID]++
		}
		if cursor = l.Next; l.All != 10_002 {
			t.Fatalf("all are %d, want 10002", l.All)
		}
	}
	if parts != 11 || len(seen) != 10_002 {
		t.Errorf("%d keys in %d parts, want 10002 in 11", len(seen), parts)
	}
	if w := get(d, "/admin/keys?org=acme&cursor=x", ""); w.Code != 400 || !strings.Contains(w.Body.String(), "begin anew") {
		t.Errorf("a cursor that leads nowhere: %d %s", w.Code, w.Body)
	}
}

func TestKeysAreSortedAndFound(t *testing.T) {
	d := deps("")
	d.Keys, d.Spend = cabinet{}, ledgers{}
	for query, want := range map[string][]string{
		"sort=spend":      {"key-0007 12.5", "ann 3"},
		"sort=unused":     {"ann 3", "old "},
		"sort=expires":    {"ann 3", "key-0000 "},
		"search=rEsearch": {"ann 3"},
		"state=revoked":   {"old "},
	} {
		var got []string
		for _, k := range list(t, d, "/admin/keys?org=acme&limit=2&"+query).Keys {
			got = append(got, k.ID+" "+k.ThisMonth)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}
