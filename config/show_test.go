package config_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config"
)

// shownDigest is a digest that is not shown.
const shownDigest = "'[masked]'"

// What is shown of a configuration is the configuration: read again, it is shown the same. Secrets and digests are not in it.
func TestShownConfigurationsAreRead(t *testing.T) {
	t.Parallel()
	for _, name := range dataFiles(t, "*.good.yaml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			l, err := config.Load(name, sources(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			first, err := l.Config.Show("")
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"pk-secret", "admin-secret", "PRIVATE KEY"} {
				if strings.Contains(string(first), secret) {
					t.Errorf("%s is shown", secret)
				}
			}
			again, n := string(first), 0
			for strings.Contains(again, shownDigest) {
				n++
				again = strings.Replace(again, shownDigest, fmt.Sprintf("'%064x'", n), 1)
			}
			l, err = config.Parse("shown.yaml", []byte(again), sources(t), nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, again)
			}
			second, err := l.Config.Show("")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(first), string(second)); diff != "" {
				t.Errorf("shown again (-first +second):\n%s", diff)
			}
		})
	}
}
