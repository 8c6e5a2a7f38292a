package usage_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate/usage"
)

func TestAgent(t *testing.T) {
	for header, want := range map[string]string{
		"":                                 "none",
		"  ":                               "none",
		"python-requests/2.31.0":           "python-requests/2",
		"Go-http-client/1.1":               "Go-http-client/1",
		"Mozilla/5.0 (X11; Linux) x/1":     "Mozilla/5",
		"launcher":                         "launcher",
		"launcher/main":                    "launcher",
		"launcher/20261121":                "launcher", // a build number would make a program of every build
		" curl/8":                          "curl/8",
		"(unknown)":                        "other",
		"a\"b/1":                           "other",
		"a\x00":                            "other",
		"ü/1":                              "other",
		"/1":                               "other",
		strings.Repeat("x", 200):           strings.Repeat("x", 44),
		strings.Repeat("x", 44) + "/999.1": strings.Repeat("x", 44) + "/999",
	} {
		if got := usage.Agent(header); got != want {
			t.Errorf("Agent(%q) = %q, want %q", header, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	got := usage.Names(map[string]int64{"b": 1, "a": 1, "c": 1 << 40})
	if diff := cmp.Diff([]string{"c", "a", "b"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
