package limits

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// keyed creates a pod by gateway g with an Idempotency-Key, and returns the answer's
// status and the pod's id.
func (s *spenders) keyed(ctx context.Context, g int, key string) (status int, id string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.gateways[g]+"/v2/pods", strings.NewReader(podBody))
	if err != nil {
		return 0, "", err
	}
	req.Header = http.Header{"Authorization": {"Bearer secret_ann"}, "Content-Type": {"application/json"}, "Idempotency-Key": {key}}
	res, err := s.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, "", err
	}
	var pod struct{ ID string }
	return res.StatusCode, pod.ID, json.Unmarshal(body, &pod)
}

// TestAKeyOutlivesItsGateway: the platform makes the pod and holds its answer, and
// the gateway is killed. Repeats at another gateway make no second pod: they wait,
// and get the first.
func TestAKeyOutlivesItsGateway(t *testing.T) {
	t.Parallel()
	s := newSpenders(t, 2)
	s.platform.AddFault(platform.Fault{Operation: "createPod", Kind: platform.FaultHang, After: true, Times: 1})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _, _ = s.keyed(context.WithoutCancel(t.Context()), 0, `"k"`) // the gateway dies before it answers
	}()
	world.Until(t, "the platform has made the pod", func() bool { return len(s.platform.CallsTo("createPod")) == 1 })
	s.kill(t, 0)
	<-answered
	if status, id, err := s.keyed(t.Context(), 1, `"k"`); status != http.StatusConflict || err != nil {
		t.Errorf("a repeat at once: %d %s (%v), want 409", status, id, err)
	}
	first := ""
	world.Until(t, "a repeat gets the pod", func() bool {
		status, id, err := s.keyed(t.Context(), 1, `"k"`)
		if err != nil || status != http.StatusCreated && status != http.StatusConflict {
			t.Fatalf("a repeat: %d (%v), want 201 or 409", status, err)
		}
		first = id
		return status == http.StatusCreated
	})
	if status, id, err := s.keyed(t.Context(), 1, `"k"`); status != http.StatusCreated || id != first || err != nil {
		t.Errorf("another repeat: %d %s (%v), want %s", status, id, err, first)
	}
	if n := len(s.platform.CallsTo("createPod")); n != 1 {
		t.Errorf("%d creates, want 1", n)
	}
	world.Until(t, "the pod is in the ledger", func() bool {
		_, state, err := s.counted(t.Context())
		return err == nil && len(state.Resources) == 1 && state.Resources[0].ID == first && len(state.Holds) == 0
	})
}
