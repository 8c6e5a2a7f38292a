package envoy_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
)

// Operators see the groups of Envoys; a group that is not configured is the fault of its parameter.
func TestRows(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, group(envoy.InLine))
	rows, viewer := s.Endpoints(), adminapi.Principal{Roles: []adminapi.Role{adminapi.Viewer}}
	if v, err := rows[0].Invoke(t.Context(), viewer, nil, nil); err != nil || len(v.(envoy.Status).Groups) != 1 {
		t.Errorf("status: %+v (%v), want one group", v, err)
	}
	_, err := rows[1].Invoke(t.Context(), viewer, url.Values{"group": {"none"}}, nil)
	if faults, ok := errors.AsType[adminapi.FaultsError](err); !ok || faults[0].Parameter != "group" {
		t.Errorf("a group that is not configured: %v, want the fault of group", err)
	}
}
