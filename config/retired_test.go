package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// A file that still has a former setting is refused, and the fault has its line and the hint. No former setting is a setting again.
func TestRetiredSettingsAreTold(t *testing.T) {
	for _, path := range strictyaml.Paths(settings.Default()) {
		if _, ok := retired()[path]; ok {
			t.Errorf("%s is a setting", path)
		}
	}
	for path, want := range retired() {
		text := "1"
		for i, part := range slices.Backward(strings.Split(path, ".")) {
			name, list := strings.CutSuffix(part, "[]")
			if list {
				text = "[" + text + "]"
			}
			if text = name + ": " + text; i > 0 {
				text = "{" + text + "}"
			}
		}
		_, err := Parse("x.yaml", []byte(text+"\n"), Sources{}, nil)
		faults, _ := errors.AsType[strictyaml.Errors](err)
		found := false
		for _, f := range faults {
			if place.ReplaceAllString(f.Path, "[]") == path {
				found = f.Message == "unknown key" && f.Hint == want && f.Line == 1
			}
		}
		if !found {
			t.Errorf("%s: %v\nwant an unknown key at %s with the hint %q", text, err, path, want)
		}
	}
}
