package legacy

import "testing"

func TestNameOfTheAddress(t *testing.T) {
	for host, want := range map[string]string{
		"rest.acme.io": "Acme", "acme.io": "Acme", "api.acme-cloud.co.uk": "AcmeCloud", "rest.ACME.io": "Acme",
		"127.0.0.1": "", "::1": "", "localhost": "", "platform": "", "platform.svc.cluster.local": "", "io": "", "": "", "api.7seas.io": "",
	} {
		if got := (Config{Host: host}).KnownName(); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
	if got := (Config{}).Name(); got != "Platform" {
		t.Errorf("of nothing: %q, want Platform", got)
	}
	if got := (Config{Brand: "Globex", Host: "rest.acme.io"}).Name(); got != "Globex" {
		t.Errorf("beside the operator's: %q, want Globex", got)
	}
}
