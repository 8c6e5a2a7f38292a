package world

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// Orgs are the files of a configuration with an embedded store and organisations in files of their own, each with five policies of the library.
type Orgs struct {
	// Keys is how many keys each organisation has.
	Keys int

	tb  testing.TB
	dir string
}

// OrgFiles writes the files of n organisations with so many keys.
func OrgFiles(tb testing.TB, n, keys int) *Orgs {
	tb.Helper()
	o := &Orgs{Keys: keys, tb: tb, dir: tb.TempDir()}
	o.write("tollgate.yaml", "platform: {base_url: \"http://127.0.0.1:1\"}\nredis: {embedded: true}\norgs_files: org*.yaml\n")
	for i := range n {
		o.Write(i, 1)
	}
	return o
}

// Path returns the path of the main file.
func (o *Orgs) Path() string { return filepath.Join(o.dir, "tollgate.yaml") }

// Env returns the values of the environment variables that the files refer to.
func (*Orgs) Env(name string) (string, bool) { return "pk-secret-" + name, true }

// Write writes the file of an organisation, which sets how many GPUs a pod may have.
func (o *Orgs) Write(i, gpus int) {
	o.tb.Helper()
	keys := make([]string, o.Keys)
	for n := range keys {
		keys[n] = fmt.Sprintf("{id: ci%d, sha256: %s}", n, identity.DigestOf(fmt.Sprint("key", i, "-", n)))
	}
	o.write(fmt.Sprintf("org%d.yaml", i), fmt.Sprintf("id: org%d\ncredential: {env: KEY_%d}\nkeys: [%s]\npolicies: [{policy: gpu_count, params: {max_per_pod: %d}}, "+
		"{policy: gpu_allow_list, params: {gpus: [NVIDIA L4]}}, {policy: price_ceiling, params: {max_usd_per_hour: 40}}, {policy: roles}, {policy: images, params: {allow: [ghcr.io/acme]}}]\n",
		i, i, strings.Join(keys, ", "), gpus))
}

// write replaces a file by one that was written an hour ago: what was written within the last seconds may change without a trace.
func (o *Orgs) write(name, text string) {
	o.tb.Helper()
	path, past := filepath.Join(o.dir, name), time.Now().Add(-time.Hour)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		o.tb.Fatal(err)
	}
	if err := os.Chtimes(path+".new", past, past); err != nil {
		o.tb.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		o.tb.Fatal(err)
	}
}
