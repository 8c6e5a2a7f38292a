package gateway

import (
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// fakeTranslator stands for a feature that serves a legacy API.
type fakeTranslator struct{}

func (fakeTranslator) Priority(*filter.Exchange) (overload.Priority, bool) {
	return overload.Read, true
}
func (fakeTranslator) Refuse(*problem.Problem) *filter.Response { return nil }
func (fakeTranslator) ForDryRun() filter.Translator             { return nil }

// Settings of the legacy APIs are faults of a gateway that has no feature for them.
func TestSettingsOfAbsentDialects(t *testing.T) {
	cfg := &settings.Config{LegacySettings: []string{"v1", "orgs[0].brownouts"}}
	c := &compiled{cfg: cfg}
	const text = ": tollgate was built without the legacy APIs (v1 and GraphQL), which alone use this setting: remove it"
	if err := legacyFaults(c); err == nil || err.Error() != "v1"+text+"\norgs[0].brownouts"+text {
		t.Errorf("faults %v, want both settings refused", err)
	}
	if c.cfg = new(settings.Config); legacyFaults(c) != nil {
		t.Error("a configuration without such settings has faults")
	}
	c.cfg, c.ports.Translators = cfg, map[route.Dialect]filter.Translator{route.V1: fakeTranslator{}}
	if err := legacyFaults(c); err != nil {
		t.Errorf("faults %v of settings whose feature is there", err)
	}
}
