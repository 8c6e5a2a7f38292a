package legacy_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/legacy"
)

// The members of an answer have the names that the API's description gives them.
func TestMembersOfAnswers(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(legacy.List{
		Calls: []legacy.Call{{
			Org: "acme", Key: "ann", Dialect: "v1", Operation: "createPod", Agent: "launcher/1", Count: 2, First: time.Unix(1, 0).UTC(), Last: time.Unix(2, 0).UTC(),
			Statuses: map[string]int64{"2xx": 2}, V2: []string{"createPod"}, Lost: map[string]int64{"minUploadMbps": 1},
		}},
		Brownouts: []legacy.Brownout{{Org: "acme", Dialect: "v1", From: time.Unix(3, 0).UTC(), Until: time.Unix(4, 0).UTC(), Now: true}},
	})
	var got any
	if err != nil || json.Unmarshal(text, &got) != nil {
		t.Fatal(err)
	}
	want := map[string]any{"calls": []any{map[string]any{
		"org": "acme", "key": "ann", "dialect": "v1", "operation": "createPod", "agent": "launcher/1", "count": 2.0,
		"first": "1970-01-01T00:00:01Z", "last": "1970-01-01T00:00:02Z", "statuses": map[string]any{"2xx": 2.0},
		"v2": []any{"createPod"}, "lost": map[string]any{"minUploadMbps": 1.0},
	}}, "brownouts": []any{map[string]any{"org": "acme", "dialect": "v1", "from": "1970-01-01T00:00:03Z", "until": "1970-01-01T00:00:04Z", "now": true}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}
