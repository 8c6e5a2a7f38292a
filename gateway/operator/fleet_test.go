package operator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/view"
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
	return &Fleet{
		Redis: client, Key: "running", Instance: name, Version: version, Since: *now, Envoys: func() int { return 3 }, Status: status,
		Current: current,
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
	f.Policies = func() []PolicyStatus { return []PolicyStatus{{Org: "acme", Revision: "p1"}} }
	f.Groups = func() []envoy.GroupStatus {
		return []envoy.GroupStatus{{Group: "edge", Refused: &envoy.Refusal{Reason: "cannot bind"}}}
	}
	r, err := adminapi.Call[Report](t.Context(), adminapi.NewTable(f.Endpoints(), adminapi.Direct{}), "GET /admin/status", adminapi.Principal{}, nil, nil)
	if err != nil || r.Revision != "r-blue" || len(r.Policies) != 1 || len(r.Envoys) != 1 {
		t.Errorf("status = %+v (%v), want the policies and the group of Envoys", r, err)
	}
}
