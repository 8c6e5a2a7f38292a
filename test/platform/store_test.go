package platform

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// views is everything an account can look at.
func (r *rig) views() map[string]string {
	r.t.Helper()
	out := map[string]string{}
	for _, path := range []string{
		"account/ssh-keys", "pods?includeClusterPods=true", "clusters", "serverless", "templates", "network-volumes", "registries",
		"registries/delegations", "account/secrets", "sandboxes", "sandboxes?state=TERMINATED", "billing?bucketSize=hour&lastN=3", "billing/pods", "billing/serverless",
		"catalog/datacenters?include=GPU_AVAILABILITY,CPU_AVAILABILITY",
	} {
		out[path] = r.want(200, "GET", "/v2/"+path, "").raw
	}
	return out
}

// furnish makes one of everything and lets some time pass.
func (r *rig) furnish() (endpoint, job string) {
	r.t.Helper()
	r.want(200, "PUT", "/v2/account/ssh-keys", `{"keys":["ssh-ed25519 AAAA"]}`)
	r.want(201, "POST", "/v2/registries", `{"name":"r","username":"u","password":"p"}`)
	r.want(201, "POST", "/v2/registries/delegations", `{"resource":"arn:aws:ecr:eu-west-1:1:repository/x"}`)
	r.want(201, "POST", "/v2/network-volumes", `{"name":"v","size":10,"dataCenter":"EU-RO-1"}`)
	r.want(201, "POST", "/v2/templates", `{"name":"t","image":"i"}`)
	r.want(201, "POST", "/v2/clusters", slurm)
	for range 5 {
		r.newPod(gpuPod)
	}
	gone := r.newPod(gpuPod)
	stopped := r.newPod(gpuPod)
	r.want(201, "POST", "/v2/account/secrets", `{"name":"s","value":"v"}`)
	r.newSandbox(`{"imageName":"i","idleTimeoutSeconds":60}`)
	r.newSandbox(`{"imageName":"i","labels":{"a":"b"}}`)
	endpoint = r.newEndpoint(queueEndpoint)
	if _, err := r.AddBuild(endpoint, Build{Branch: "main"}); err != nil {
		r.t.Fatal(err)
	}
	job = r.callOn(r.RunHandler(), "POST", "/v2/"+endpoint+"/run", `{"input":{"n":1.50,"emulator":{"delay_ms":60000}}}`).text("id")
	r.Clock().Advance(90 * time.Second)
	r.want(200, "POST", "/v2/pods/"+stopped+"/action", `{"action":"stop"}`)
	r.want(204, "DELETE", "/v2/pods/"+gone, "")
	return endpoint, job
}

func TestStateOutlivesRestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "platform.db")
	r := newRig(t, Options{DataFile: file})
	endpoint, job := r.furnish()
	before := r.views()
	left, perHour, _ := r.Balance("default")
	if err := r.Server.Close(); err != nil {
		t.Fatal(err)
	}
	r = newRig(t, Options{DataFile: file, Seed: 2})
	if diff := cmp.Diff(before, r.views()); diff != "" {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
	if l, p, _ := r.Balance("default"); l != left || math.Abs(p-perHour) > 1e-9 {
		t.Errorf("got balance %v, %v per hour; want %v and %v", l, p, left, perHour)
	}
	if !r.Clock().Now().Equal(start().Add(90 * time.Second)) {
		t.Errorf("the clock stands at %s", r.Clock().Now())
	}
	r.Clock().Advance(time.Minute)
	a := r.callOn(r.RunHandler(), "GET", "/v2/"+endpoint+"/status/"+job, "")
	if a.text("status") != "COMPLETED" || !strings.Contains(a.raw, "1.50") {
		t.Errorf("the job that was running: got %s", a.raw)
	}
	r.newPod(gpuPod)
}

// A copy of the file taken while the emulator is up is what a crash leaves.
func TestStateOutlivesCrash(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{DataFile: filepath.Join(dir, "a.db")})
	r.furnish()
	before := r.views()
	from, err := os.Open(filepath.Join(dir, "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	to, err := os.Create(filepath.Join(dir, "b.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	after := newRig(t, Options{DataFile: filepath.Join(dir, "b.db")}).views()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("after a crash (-before +after):\n%s", diff)
	}
}

func TestDataFileRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := New(Options{DataFile: dir}); err == nil {
		t.Error("a directory was taken for a data file")
	}
	junk := filepath.Join(dir, "junk.db")
	if err := os.WriteFile(junk, []byte(strings.Repeat("junk", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{DataFile: junk}); err == nil {
		t.Error("junk was taken for a data file")
	}
}
