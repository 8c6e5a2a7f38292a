package v1

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// TestListsAreBounded: a list in one text is counted like an array, in every
// form and in the query.
func TestListsAreBounded(t *testing.T) {
	list := func(n int) string {
		words := make([]string, n)
		for i := range words {
			words[i] = fmt.Sprintf("X-%d", i)
		}
		return strings.Join(words, ",")
	}
	fields := map[string]form{
		"gpuTypeIds": podCreateForm, "dataCenterIds": endpointUpdateForm, "cpuFlavorIds": podCreateForm, "countryCodes": podCreateForm,
		"networkVolumeIds": endpointUpdateForm, "ports": templateUpdateForm,
	}
	for name := range splitLists {
		if fields[name] == nil {
			t.Errorf("%s may come as one text but is not tried here", name)
		}
	}
	for name, form := range fields {
		t.Run(name, func(t *testing.T) {
			body := func(n int) *translate.Incoming {
				return &translate.Incoming{HasBody: true, Body: map[string]any{name: list(n)}}
			}
			_, got := form.read(body(maxItems + 1))
			want := name + ": must have at most 256 items"
			if got == nil || got.status != 400 || got.text != want {
				t.Errorf("one too many: %v, want 400 %q", got, want)
			}
			if _, got := form.read(body(maxItems)); got != nil {
				t.Errorf("as many as there may be: %v", got)
			}
		})
	}
	t.Run("query", func(t *testing.T) {
		g := newGate(t, DefaultConfig())
		got := g.do(t, "GET /v1/pods?gpuTypeId="+list(maxItems)+"&gpuTypeId=Y", "")
		if want := "gpuTypeId: must have at most 256 items"; got.Status != 400 || got.text("message") != want {
			t.Errorf("answer %d %q, want 400 %q", got.Status, got.text("message"), want)
		}
	})
}

// TestPlacementIsBounded: the work for the largest lists there may be is that of
// the attempts, not of all combinations.
func TestPlacementIsBounded(t *testing.T) {
	const types = 45
	run := func(centres int) {
		calls := constant{"createPod": {Status: 400, Body: map[string]any{"detail": short}}}
		maps.Copy(calls, catalogOf(types))
		quirks := legacy.Quirks{}
		session := legacy.NewSession(translate.NewClient(translate.Deps{}, calls, &translate.Incoming{Account: "acme"}, 0), &quirks)
		_, err := session.CreatePod(t.Context(), &legacy.PodCreate{Placement: legacy.Placement{
			Types: numbered("GPU", types), KeepOrder: true, Clouds: []string{"SECURE"}, Count: 1,
			DataCenters: numbered("DC", centres), SplitDataCenters: true,
		}})
		if _, ok := errors.AsType[*legacy.ShortageError](err); !ok {
			t.Fatalf("got %v, want a shortage", err)
		}
	}
	run(maxItems)
	small, large := testing.AllocsPerRun(5, func() { run(1) }), testing.AllocsPerRun(5, func() { run(maxItems) })
	if large > small+1000 {
		t.Errorf("%.0f allocations with 1 data centre, %.0f with %d: the work grows with the product", small, large, maxItems)
	}
}

// catalogOf answers the GPU catalog with n types.
func catalogOf(n int) constant {
	var gpus []any
	for _, id := range numbered("GPU", n) {
		gpus = append(gpus, map[string]any{"id": id, "availability": "HIGH"})
	}
	return constant{"listGpuTypes": {Status: 200, Body: map[string]any{"gpus": gpus}}}
}

func numbered(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return list
}
