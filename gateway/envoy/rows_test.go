package envoy_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
)

// Operators see the groups of Envoys; a group that is not configured is the fault of its parameter.
func TestRows(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, group(envoy.InLine))
	rows, viewer := s.Rows(), row.Scope{Roles: []row.Role{row.Viewer}}
	if v, err := rows[0].Reply(t.Context(), viewer, nil, nil); err != nil || len(v.(envoy.Status).Groups) != 1 {
		t.Errorf("status: %+v (%v), want one group", v, err)
	}
	_, err := rows[1].Reply(t.Context(), viewer, url.Values{"group": {"none"}}, nil)
	if faults, ok := errors.AsType[row.FaultsError](err); !ok || faults[0].Parameter != "group" {
		t.Errorf("a group that is not configured: %v, want the fault of group", err)
	}
}
