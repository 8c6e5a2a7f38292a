package envoy_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// Envoys send every operation of the run interface through the HTTP door, and none of
// the API past the filter.
func TestEnvoysKnowTheRunInterface(t *testing.T) {
	cfg := settings.Default()
	cfg.Platform.RunURL, cfg.Platform.BalancedURL = "https://run.platform.example", "https://{id}.run.platform.example"
	cfg.Envoy.XDS.Groups = []settings.NodeGroup{{ID: "edge"}}
	g, _, err := envoy.NodeGroup(&cfg, "edge")
	if err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile("^(?:" + g.Runs.Paths + ")$")
	sent := func(op *schema.Operation) bool {
		path := strings.NewReplacer("{", "", "}", "").Replace(op.Path)
		return paths.MatchString(path) || strings.HasPrefix(path, g.Runs.Balanced)
	}
	runs, err := schema.LoadRun()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range runs.Operations() {
		if !sent(op) {
			t.Errorf("%s, %s, goes through the filter", op.ID, op.Path)
		}
	}
	api, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range api.Operations() {
		if sent(op) {
			t.Errorf("%s, %s, goes past the filter", op.ID, op.Path)
		}
	}
}
