package filter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/brownout"
)

// noon is when the tests' brownouts begin.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Brownout implements filter.Dimmer.
func (shout) Brownout(text string) *translate.Outgoing {
	return &translate.Outgoing{Status: 503, ContentType: "text/shout", Body: []byte(strings.ToUpper(text))}
}

// legacyChain has the filters about retired interfaces and an answer behind
// them. v1 of acme is off from noon to one.
func legacyChain(now time.Time, message string) *filter.Chain {
	clock := func() time.Time { return now }
	dark := filter.Brownouts{{Org: "acme", Dialect: route.V1}: brownout.New([]brownout.Config{
		{Dialects: []brownout.Dialect{"v1"}, From: noon, Until: noon.Add(time.Hour), Message: message},
	}, "v1")}
	return &filter.Chain{
		Head: []filter.Filter{&filter.Legacy{Brownouts: dark, Now: clock}},
		Content: []filter.Filter{
			&filter.Brownout{Brownouts: dark, Now: clock, Dialects: map[route.Dialect]filter.Dimmer{route.V1: shout{}, route.GraphQL: shout{}}},
			probe{name: "translate", trail: new([]string), request: local},
		},
	}
}

func TestBrownouts(t *testing.T) {
	const announced = "2026-11-21T12:00:00Z/2026-11-21T13:00:00Z"
	for name, tc := range map[string]struct {
		path   string
		org    string // "" for no caller
		public bool
		now    time.Time
		status int
		header string
	}{
		"long before":          {"/v1/pods", "acme", false, noon.Add(-8 * 24 * time.Hour), 200, ""},
		"announced":            {"/v1/pods", "acme", false, noon.Add(-7*24*time.Hour + time.Second), 200, announced},
		"begun":                {"/v1/pods", "acme", false, noon, 503, announced},
		"last second":          {"/v1/pods", "acme", false, noon.Add(time.Hour - time.Second), 503, announced},
		"over":                 {"/v1/pods", "acme", false, noon.Add(time.Hour), 200, ""},
		"another organisation": {"/v1/pods", "globex", false, noon, 200, ""},
		"another dialect":      {"/graphql", "acme", false, noon, 200, ""},
		"v2":                   {"/v2/pods", "acme", false, noon, 200, ""},
		"how to migrate":       {"/v1/docs", "acme", true, noon, 200, ""},
		"a stranger":           {"/v1/docs", "", true, noon, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			chain := legacyChain(tc.now, "")
			ex := exchange(tc.path)
			ex.Route = &route.Route{Public: tc.public}
			if tc.org != "" {
				ex.Caller = &identity.Caller{Org: tc.org, Key: "ann"}
			}
			if chain.RunHead(t.Context(), ex) {
				chain.RunContent(t.Context(), ex)
			}
			chain.RunResponse(t.Context(), ex)
			if ex.Answer.Status != tc.status {
				t.Errorf("status = %d, want %d", ex.Answer.Status, tc.status)
			}
			if got := ex.Answer.Header.Get(filter.HeaderBrownout); got != tc.header {
				t.Errorf("%s = %q, want %q", filter.HeaderBrownout, got, tc.header)
			}
			if got := ex.Answer.Header.Get("Retry-After"); (got != "") != (tc.status == 503) {
				t.Errorf("Retry-After = %q with status %d", got, tc.status)
			}
		})
	}
}

func TestABrownoutSaysWhyAndUntilWhen(t *testing.T) {
	for message, want := range map[string]string{
		"ask the platform team": "ASK THE PLATFORM TEAM",
		"":                      "THE V1 INTERFACE IS RETIRED AND SWITCHED OFF ON PURPOSE UNTIL 2026-11-21T13:00:00Z; MOVE TO /V2",
	} {
		chain := legacyChain(noon.Add(59*time.Minute+500*time.Millisecond), message)
		ex := exchange("/v1/pods")
		ex.Route, ex.Caller = &route.Route{ID: "listPods"}, &identity.Caller{Org: "acme", Key: "ann"}
		if chain.RunHead(t.Context(), ex) {
			chain.RunContent(t.Context(), ex)
		}
		chain.RunResponse(t.Context(), ex)
		if got := string(ex.Answer.Body); got != want {
			t.Errorf("text = %q, want %q", got, want)
		}
		if got := ex.Answer.Header.Get("Retry-After"); got != "60" {
			t.Errorf("Retry-After = %q, want 60: 59.5 s rounded up", got)
		}
		if e := ex.Event; e.Refusal != "brownout" || e.Stage != "brownout" || e.Outcome != "refused" {
			t.Errorf("event = %q at %q, %q; want a brownout that was refused", e.Refusal, e.Stage, e.Outcome)
		}
	}
}
