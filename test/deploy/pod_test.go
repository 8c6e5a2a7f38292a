package deploy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// pod is the part of a Deployment's pod, with one container, that a kubelet reads.
type pod struct {
	Containers []struct {
		Args  []string
		Ports []struct {
			Name          string
			ContainerPort int
		}
		VolumeMounts                                []volumeMount
		StartupProbe, LivenessProbe, ReadinessProbe probe
	}
	Volumes []struct {
		Name      string
		ConfigMap *struct{ Name string }
		Secret    *struct{ SecretName string }
	}
}

type volumeMount struct{ Name, MountPath, SubPathExpr string }

type probe struct {
	HTTPGet struct{ Path, Port, Scheme string }
}

// kubelet runs a pod on this machine: its volumes are directories, and its ports
// others, on loopback.
type kubelet struct {
	pod   pod
	ports map[string]int // of this machine, by name
	*process
}

// podOf reads the pod and the ConfigMaps of manifests.
func podOf(t *testing.T, manifests string) (p pod, files map[string]map[string]string) {
	t.Helper()
	files = map[string]map[string]string{}
	for _, object := range objects(t, manifests) {
		b, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var as struct {
			Kind     string
			Metadata struct{ Name string }
			Data     map[string]string
			Spec     struct{ Template struct{ Spec pod } }
		}
		switch object["kind"] {
		case "ConfigMap", "Deployment":
			if err := json.Unmarshal(b, &as); err != nil {
				t.Fatal(err)
			}
		}
		switch as.Kind {
		case "ConfigMap":
			files[as.Metadata.Name] = as.Data
		case "Deployment":
			if strings.HasSuffix(as.Metadata.Name, "-front") {
				continue // the Envoys
			}
			p = as.Spec.Template.Spec
		}
	}
	if len(p.Containers) != 1 {
		t.Fatalf("the pod has %d containers, want 1", len(p.Containers))
	}
	return p, files
}

// mount lays the files of a ConfigMap or Secret out as a kubelet does: by links, of
// which one is swapped when they change.
func mount(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	const version = "..2026_11_26_10_00_00.1"
	if err := os.MkdirAll(filepath.Join(dir, version), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(version, filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, version, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("..data/"+name, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// runPod starts what manifests describe. The objects that they refer to, by name, are in
// outside; env are the variables of its Secret.
func runPod(t *testing.T, manifests string, outside map[string]map[string]string, env ...string) *kubelet {
	t.Helper()
	k := &kubelet{ports: map[string]int{}}
	var files map[string]map[string]string
	k.pod, files = podOf(t, manifests)
	maps.Copy(files, outside)
	container := k.pod.Containers[0]
	// Longer paths come first: a path may be within another.
	slices.SortFunc(container.VolumeMounts, func(a, b volumeMount) int { return len(b.MountPath) - len(a.MountPath) })
	var here []string
	dirs := map[string]string{}
	for _, m := range container.VolumeMounts {
		dirs[m.Name] = t.TempDir()
		here = append(here, m.MountPath+"/", dirs[m.Name]+"/", m.MountPath, dirs[m.Name])
	}
	for _, p := range container.Ports {
		port, err := redistest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		k.ports[p.Name] = port
		here = append(here, fmt.Sprintf("0.0.0.0:%d", p.ContainerPort), fmt.Sprintf("127.0.0.1:%d", port))
	}
	here = append(here, "https://platform.example", platform.RunT(t).URL, "notice: 15s", "notice: 1s")
	place := strings.NewReplacer(here...)
	for _, v := range k.pod.Volumes {
		var name string
		switch {
		case v.ConfigMap != nil:
			name = v.ConfigMap.Name
		case v.Secret != nil:
			name = v.Secret.SecretName
		default:
			continue
		}
		if _, ok := files[name]; !ok {
			t.Fatalf("volume %s is of %s, which nobody makes", v.Name, name)
		}
		placed := map[string]string{}
		for file, text := range files[name] {
			placed[file] = place.Replace(text)
		}
		mount(t, dirs[v.Name], placed)
	}
	args := make([]string, len(container.Args))
	for i, a := range container.Args {
		args[i] = place.Replace(a)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary.Path(t), args...)
	state := place.Replace("/var/lib/tollgate")
	cmd.Env = append([]string{"PATH=/nowhere", "STATE_DIRECTORY=" + state}, env...) // the image sets it
	k.process = start(t, cmd)
	k.wait(t, `"msg":"serving"`)
	if journals, err := filepath.Glob(filepath.Join(state, "owners-*.jsonl")); err != nil || len(journals) != 1 {
		t.Errorf("the volume for state has the journals %q (%v), want one", journals, err)
	}
	return k
}

// asks is the result of a probe for the kubelet. It looks at no certificate.
func (k *kubelet) asks(t *testing.T, p probe) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // as a kubelet does
	}}
	scheme := strings.ToLower(p.HTTPGet.Scheme)
	if scheme == "" {
		scheme = "http"
	}
	port, ok := k.ports[p.HTTPGet.Port]
	if !ok {
		t.Fatalf("the probe asks port %q, which the container has not", p.HTTPGet.Port)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s://127.0.0.1:%d%s", scheme, port, p.HTTPGet.Path), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// A gateway that is started as the chart's pod passes the probes of the pod, by
// default and with all that the chart can do, and while it stops is alive, and not
// ready.
func TestProbesOfTheKubelet(t *testing.T) {
	t.Parallel()
	redis := redistest.Run(t)
	pair, err := os.ReadFile(certificate(t))
	if err != nil {
		t.Fatal(err)
	}
	mesh := world.NewAuthority(t, "mesh", time.Now())
	key := map[string]string{"tls.crt": string(pair), "tls.key": string(pair), "ca.crt": mesh.PEM()}
	outside := map[string]map[string]string{
		"tollgate-tls": key, "tollgate-envoy": key,
		"mesh-authority": {"ca.crt": mesh.PEM(), "crl.pem": mesh.Revoked(t, time.Now().Add(time.Hour))},
		"acme-rego":      {"nights.rego": "package policies.nights\n\ndeny contains \"closed\" if input.request.verb == \"create\"\n"},
		"acme-keys":      {"more.keys.yaml": `- {id: bob, sha256: "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"}` + "\n"},
	}
	for name, args := range map[string][]string{"defaults": nil, "everything": {"--values", everything}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := runPod(t, render(t, args...), outside, "REDIS_URL=redis://"+redis.Addr(), "ACME_PLATFORM_KEY="+platform.DefaultKey,
				"TOLLGATE_ADMIN_TOKEN=0123456789abcdef", "OTLP_AUTHORIZATION=x", "POD_NAME=tollgate-1")
			c := k.pod.Containers[0]
			for what, p := range map[string]probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
				if got := k.asks(t, p); got != http.StatusOK {
					t.Errorf("%s probe: status %d, want 200", what, got)
				}
			}
			if err := k.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			k.wait(t, `"msg":"draining"`)
			if alive, ready := k.asks(t, c.LivenessProbe), k.asks(t, c.ReadinessProbe); alive != http.StatusOK || ready != http.StatusServiceUnavailable {
				t.Errorf("while it stops, liveness is %d and readiness %d, want 200 and 503", alive, ready)
			}
			if faults := regexp.MustCompile(`(?m)^.*"level":"ERROR".*$`).FindAllString(k.written(), -1); len(faults) > 0 {
				t.Errorf("the gateway has faults: %s", strings.Join(faults, "\n"))
			}
		})
	}
}

// The files that the pod's configuration names are where the chart mounts them: without a
// mount, the gateway does not start.
func TestAMissingMountIsFound(t *testing.T) {
	t.Parallel()
	manifests := render(t, "--values", everything, "--set-json", `mounts={"tls": {"secret": "tollgate-tls"}}`)
	_, files := podOf(t, manifests)
	path := filepath.Join(t.TempDir(), "tollgate.yaml")
	if err := os.WriteFile(path, []byte(files["tollgate"]["tollgate.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary.Path(t), "check", "-c", path).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("/etc/tollgate.d/acme-keys")) {
		t.Errorf("check says %s (%v), want the file that is not there", out, err)
	}
}
