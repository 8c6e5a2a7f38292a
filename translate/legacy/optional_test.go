package legacy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A default after what is said yields to it.
func TestPlain(t *testing.T) {
	p := PassThrough{}
	p.Set("locked", false)
	p.Set("locked", true)
	p.Set("startSsh", true)
	if diff := cmp.Diff(PassThrough{"locked": false, "startSsh": true}, p); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}
