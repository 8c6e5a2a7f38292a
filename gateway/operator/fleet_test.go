package operator

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// running returns a gateway that can say that it runs.
func running(t *testing.T, store *miniredis.Miniredis, name, version string, now *time.Time) *Fleet {
	t.Helper()
	client := redistest.Once(t, store.Addr())
	status := new(GatewayStatus)
	status.SetLoaded(*now, "r-"+name, nil, nil)
	current := view.New(func() time.Time { return *now })
	current.Set(&view.View{Config: new(settings.Config)})
	current.Config().Limits.Timeout = 10 * time.Second
	envoys := envoy.NewServer(envoy.Deps{Logger: slog.New(slog.DiscardHandler), Meter: noop.NewMeterProvider().Meter(""), Now: current.Now})
	t.Cleanup(envoys.Close)
	if err := envoys.SetGroups([]envoy.Group{{ID: "edge"}}, ""); err != nil {
		t.Fatal(err)
	}
	for stream := range int64(3) {
		if err := errors.Join(envoys.OnDeltaStreamOpen(t.Context(), stream, ""),
			envoys.OnStreamDeltaRequest(stream, &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Cluster: "edge"}})); err != nil {
			t.Fatal(err)
		}
	}
	return &Fleet{
		Redis: client, Key: "running", Instance: name, Version: version, Since: *now, Envoys: envoys, Status: status, Current: current,
		Unserved: func() []string { return nil },
	}
}

// names lists the running gateways with their versions, as one gateway sees them.
func names(t *testing.T, f *Fleet) (out []string) {
	t.Helper()
	list, err := f.Gateways(t.Context())
	if err != nil {
		t.Error(err)
	}
	for _, i := range list {
		out = append(out, i.Instance+" "+i.Version+" "+i.Revision)
		if i.Envoys != 3 || i.Since.IsZero() {
			t.Errorf("%s has %d Envoys, since %s", i.Instance, i.Envoys, i.Since)
		}
	}
	return out
}

func TestGatewaysKnowEachOther(t *testing.T) {
	t.Parallel()
	store, now := miniredis.RunT(t), time.Unix(1e9, 0)
	store.SetTime(now)
	blue, green := running(t, store, "blue", "v1", &now), running(t, store, "green", "v2", &now)
	ctx, stop := context.WithCancel(t.Context())
	stop() // it says so once, and that it ends
	if err := green.Announce(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"blue v1 r-blue"}, names(t, blue)); diff != "" {
		t.Errorf("after the other has ended (-want +got):\n%s", diff)
	}
	green.announceOnce(t.Context())
	if diff := cmp.Diff([]string{"blue v1 r-blue", "green v2 r-green"}, names(t, blue)); diff != "" {
		t.Errorf("while both run (-want +got):\n%s", diff)
	}
	now = now.Add(announceEnds)
	store.SetTime(now)
	if diff := cmp.Diff([]string{"blue v1 r-blue"}, names(t, blue)); diff != "" {
		t.Errorf("after the other was killed (-want +got):\n%s", diff)
	}
	store.Close()
	if list, err := blue.Gateways(t.Context()); err == nil || len(list) != 1 {
		t.Errorf("without the store: %v (%v), want this one and an error", list, err)
	}
}

func TestAFailedConfigurationIsShownUntilOneIsTaken(t *testing.T) {
	t.Parallel()
	s := new(GatewayStatus)
	s.SetLoaded(time.Unix(1, 0), "r1", nil, nil)
	s.SetFailed(time.Unix(2, 0), errors.New("tollgate.yaml:3:1: orgz: unknown key"))
	if r := s.Report(); !strings.Contains(r.Fault, "orgz") || r.Revision != "r1" || r.Failed == nil {
		t.Errorf("status = %+v, want the fault beside the revision in force", r)
	}
	s.SetLoaded(time.Unix(3, 0), "r2", nil, nil)
	if r := s.Report(); r.Fault != "" || r.Failed != nil || r.Revision != "r2" {
		t.Errorf("status = %+v, want the fault gone", r)
	}
}

func TestStatusHasPoliciesAndEnvoys(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	f := running(t, miniredis.RunT(t), "blue", "v1", &now)
	engine, err := policies.NewEngine(policyconfig.DefaultLimits(), map[string]policies.Config{"acme": {}}, policies.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	f.Engines = new(EngineFactory)
	f.Engines.InForce.Store(engine)
	r, err := adminapi.Call[Report](t.Context(), adminapi.NewTable(f.Endpoints(), adminapi.Direct{}), "GET /admin/status", adminapi.Principal{}, nil, nil)
	if err != nil || r.Revision != "r-blue" || len(r.Policies) != 1 || r.Policies[0].Org != "acme" || len(r.Envoys) != 1 || r.Envoys[0].Here != 3 {
		t.Errorf("status = %+v (%v), want the policies and the group of Envoys", r, err)
	}
}
