package ratelimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

func TestDefaultConfigIsValid(t *testing.T) {
	if err := ratelimit.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfigFaultsAreAllNamed(t *testing.T) {
	var c ratelimit.Config
	c.Gateway = "a|b c"
	err := c.Validate()
	if err == nil {
		t.Fatal("Validate found nothing wrong")
	}
	var got []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		path, _, _ := strings.Cut(line, ":")
		got = append(got, path)
	}
	want := []string{
		"mode", "timeout", "gateway", "gateways", "failure.read", "failure.write", "lease.horizon",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestConfigYAML(t *testing.T) {
	text := `
mode: leased
timeout: 30ms
failure: {read: open}
lease: {horizon: 1s}
`
	got := ratelimit.DefaultConfig()
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := ratelimit.DefaultConfig()
	want.Mode, want.Timeout = ratelimit.ModeLeased, 30*time.Millisecond
	want.Failure.Read = ratelimit.FailOpen
	want.Lease.Horizon = time.Second
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestLimitValidate(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   ratelimit.Limit
		want string
	}{
		{"zero", ratelimit.Limit{}, ""},
		{"usual", ratelimit.Limit{Minute: 60, Hour: 3000, Day: 50_000}, ""},
		{"hour left out", ratelimit.Limit{Minute: 60, Day: 100}, ""},
		{"negative", ratelimit.Limit{Hour: -1}, "hour: must not be negative, got -1"},
		{"too large", ratelimit.Limit{Day: 2e12}, "day: must be at most 1000000000000, got 2000000000000"},
		{"minute more than hour", ratelimit.Limit{Minute: 61, Hour: 60}, "minute: must be at most 60, which is the quota of the hour, got 61"},
		{"minute more than day", ratelimit.Limit{Minute: 61, Day: 60}, "minute: must be at most 60, which is the quota of the day, got 61"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := tt.in.Validate(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("Validate = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRefRoundTrip(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want ratelimit.Ref
		ok   bool
	}{
		{"key:k1", ratelimit.Ref{Kind: ratelimit.KindKey, ID: "k1"}, true},
		{"class:k1/run:ep-2", ratelimit.Ref{Kind: ratelimit.KindClass, ID: "k1/run:ep-2"}, true},
		{"org", ratelimit.Ref{}, false},
		{"user:k1", ratelimit.Ref{}, false},
		{"team:", ratelimit.Ref{}, false},
		{"team:a b", ratelimit.Ref{}, false},
	} {
		got, err := ratelimit.ParseRef(tt.in)
		if (err == nil) != tt.ok || got != tt.want {
			t.Errorf("ParseRef(%q) = %v, %v; want %v, ok %v", tt.in, got, err, tt.want, tt.ok)
		}
		if tt.ok && got.String() != tt.in {
			t.Errorf("String = %q, want %q", got, tt.in)
		}
	}
}
