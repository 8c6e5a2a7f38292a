package grants

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies"
)

// Approvals of version 0.9.0 apply to the same calls. Members that the API's description does not contain are a part of the call.
func TestCallDigest(t *testing.T) {
	digest := func(unknown map[string]any) string {
		ex := new(filter.Exchange)
		ex.Operation, ex.Caller = &schema.Operation{ID: "createPod", Path: "/v2/pods"}, &identity.Caller{Key: "ann", Team: "research"}
		ex.Evaluation.Input = &policies.Input{
			Request:  policies.Request{Body: map[string]any{"name": "a"}, Unknown: unknown},
			Resource: policies.Resource{After: map[string]any{"name": "a", "gpu": nil}},
		}
		got, err := callDigest(ex)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	sum := sha256.Sum256([]byte(filter.Digest("ann", "research", "createPod", "/v2/pods", "") + `{"name":"a"}` + "\n" + `{"gpu":null,"name":"a"}` + "\n"))
	for _, none := range []map[string]any{nil, {}} {
		if got, want := digest(none), hex.EncodeToString(sum[:]); got != want {
			t.Errorf("digest %s, want %s", got, want)
		}
	}
	if one, other := digest(map[string]any{"new": "1"}), digest(map[string]any{"new": "2"}); one == other || one == digest(nil) {
		t.Errorf("calls with different unknown members have the digests %s and %s", one, other)
	}
}
