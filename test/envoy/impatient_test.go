package envoy

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/world"
)

// until has each caller ask for a pod of its own, again after each answer that is none, as a program does.
func (l lane) until(t *testing.T, dialect, scene string) *sync.WaitGroup {
	var wg sync.WaitGroup
	for i := range leaving {
		wg.Go(func() {
			for range 100 {
				status, answer := l.post(t.Context(), dialect, fmt.Sprintf("%s-%s-%d", dialect, scene, i), false)
				if status/100 == 2 {
					return
				}
				if status != 0 && status < http.StatusInternalServerError {
					t.Errorf("%s %s: %d %s", dialect, scene, status, answer)
					return
				}
				world.Pause(making / 40) // the caller's own
			}
			t.Errorf("%s %s: no pod after a hundred calls", dialect, scene)
		})
	}
	return &wg
}

// TestEnvoyGivesUp: an Envoy with less patience than the platform takes answers its callers, who ask again: each gets one pod.
func TestEnvoyGivesUp(t *testing.T) {
	t.Parallel()
	for topology, inLine := range map[string]bool{"in line": true, "ext_proc": false} {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			p, l := lanes(t, 1, inLine, func(b *bootstrap, _ []string) {
				const patience = "0.25s"
				if !inLine {
					grpc, _ := b.filter()["grpc_service"].(map[string]any)
					grpc["timeout"], b.filter()["message_timeout"] = patience, patience
				}
				for _, r := range b.routes() {
					if route, ok := r.(map[string]any)["route"].(map[string]any); ok {
						route["timeout"] = patience
					}
				}
			})
			p.SetLatency("createPod", making)
			for _, dialect := range []string{"v2", "v1", "graphql"} {
				l[0].until(t, dialect, "impatient").Wait()
				if n := len(p.CallsTo("createPod")); n != leaving {
					t.Errorf("%s: %d pods for %d wishes", dialect, n, leaving)
				}
				p.ResetCalls()
			}
		})
	}
}

// TestEnvoyRetries: an operator's Envoy repeats calls at another gateway when one is killed, which the pages advise against. Each caller gets one pod.
func TestEnvoyRetries(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"v2", "v1", "graphql"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			p, l := lanes(t, 2, true, func(b *bootstrap, gateways []string) {
				var endpoints []any
				for _, g := range gateways {
					endpoints = append(endpoints, node{"endpoint": node{"address": socket(t, g)}})
				}
				b.cluster("platform")["load_assignment"] = node{"cluster_name": "platform", "endpoints": []any{node{"lb_endpoints": endpoints}}}
				for _, r := range b.routes() {
					if route, ok := r.(map[string]any)["route"].(map[string]any); ok {
						route["retry_policy"] = node{
							"retry_on": "5xx,reset,connect-failure", "num_retries": 3,
							"retry_host_predicate": []any{node{"name": "envoy.retry_host_predicates.previous_hosts", "typed_config": node{"@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"}}},
						}
					}
				}
			})
			for i := range l { // the gateways know each other
				for status := 0; status != http.StatusCreated; {
					status, _ = l[i].post(t.Context(), "v2", fmt.Sprint("first-", i), false)
				}
			}
			p.ResetCalls()
			p.SetLatency("createPod", making)
			got := l[1].until(t, dialect, "retried")
			world.Pause(making / 2) // the creates are under way
			if err := l[0].gateway.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			got.Wait()
			if n := len(p.CallsTo("createPod")); n != leaving {
				t.Errorf("%d pods for %d wishes", n, leaving)
			}
		})
	}
}
