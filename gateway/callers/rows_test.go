package callers

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Many keys are sorted, and found by their owners and states.
func TestKeysAreSortedAndFound(t *testing.T) {
	t.Parallel()
	var records []settings.KeyRecord
	for i := range 10_000 {
		records = append(records, settings.KeyRecord{ID: fmt.Sprintf("key-%04d", i), State: "in force", By: "ada", Used: time.Unix(int64(i), 0)})
	}
	records = append(records, settings.KeyRecord{ID: "ann", Owner: "Ann of Research", State: "in force", By: "configuration", Expires: time.Unix(9, 0)}, settings.KeyRecord{ID: "old", State: "revoked", By: "bob"})
	spent := map[string]*ledger.Balance{"key-0007": {Accrued: ledger.Accrued{Day: 1e6, Month: 12.5e6}}, "ann": {Accrued: ledger.Accrued{Month: 3e6}}}
	for _, tt := range []struct {
		p    listedKeys
		want []string
	}{
		{listedKeys{Sort: "spend"}, []string{"key-0007 12.5", "ann 3"}},
		{listedKeys{Sort: "unused"}, []string{"ann 3", "old "}},
		{listedKeys{Sort: "expires"}, []string{"ann 3", "key-0000 "}},
		{listedKeys{Sort: "made", Search: "rEsearch"}, []string{"ann 3"}},
		{listedKeys{Sort: "made", State: "revoked"}, []string{"old "}},
	} {
		tt.p.Paging = row.Paging{Limit: 2}
		list, err := tt.p.list(records, spent)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, k := range list.Keys {
			got = append(got, k.ID+" "+k.ThisMonth)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.p, diff)
		}
	}
	if list, err := (&listedKeys{Paging: row.Paging{Limit: 1000}}).list(records, spent); err != nil || list.All != 10_002 || list.Next == "" {
		t.Errorf("all are %d (%v), want 10002 in parts", list.All, err)
	}
}
