package legacy_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/legacy"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/usage"
)

// ruleOfTheManual reads the ACL rule docs/migrate.md gives.
func ruleOfTheManual(t *testing.T) []any {
	t.Helper()
	page, err := os.ReadFile("../../docs/migrate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "\n~tollgate:legacy*")
	if !ok {
		t.Fatal("docs/migrate.md gives no ACL rule")
	}
	text, _, _ := strings.Cut(rest, "\n```")
	rule := []any{"~tollgate:legacy*"}
	for word := range strings.FieldsSeq(text) {
		rule = append(rule, word)
	}
	return rule
}

// A user with the manual's rights can do all that is done.
func TestTheManualsRuleIsEnough(t *testing.T) {
	addr := redistest.Start(t)
	admin := redistest.Client(t, addr)
	rule := append([]any{"ACL", "SETUSER", "legacy", "on", ">secret", "resetkeys", "resetchannels", "-@all", "+hello", "+auth"}, ruleOfTheManual(t)...)
	if err := admin.Do(t.Context(), rule...).Err(); err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	client := redistest.As(t, addr, "legacy", "secret")

	s := usage.NewStore(client, "tollgate:usage")
	for i := range 3 {
		one := usage.Row{RowKey: usage.RowKey{Key: "ann", Dialect: "v1", Operation: "listPods", Agent: "a/1"}, Totals: usage.Totals{Count: 1, First: noon, Last: noon}}
		if err := s.Write(t.Context(), usage.Batch{Org: "acme", Source: "g1", Seq: int64(i + 1), Rows: []usage.Row{one}}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Rows(t.Context(), "acme"); err != nil || len(got) != 1 || got[0].Count != 3 {
		t.Errorf("rows = %+v, %v, want one with 3 calls", got, err)
	}
	notes := legacy.NewRecords(client, "tollgate:legacy")
	key := translate.Key{Account: "acme", Kind: translate.KindPod, ID: "p1"}
	if err := notes.Put(t.Context(), key, json.RawMessage(`{}`), time.Hour); err != nil {
		t.Errorf("Put: %v", err)
	}
	if err := notes.AddAll(t.Context(), "acme", translate.KindPod, map[string]json.RawMessage{"p2": json.RawMessage(`{}`)}, time.Hour); err != nil {
		t.Errorf("AddAll: %v", err)
	}
	if _, _, err := notes.Get(t.Context(), key); err != nil {
		t.Errorf("Get: %v", err)
	}
	if err := admin.Del(t.Context(), "tollgate:legacy{acme:pod}:p1").Err(); err != nil { // it expired, the index knows it
		t.Fatal(err)
	}
	if _, err := notes.List(t.Context(), "acme", translate.KindPod); err != nil {
		t.Errorf("List: %v", err)
	}
	if err := notes.Delete(t.Context(), key); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if err := client.Set(t.Context(), "tollgate:rl:x", "1", 0).Err(); err == nil {
		t.Error("the user may write other keys")
	}
}
