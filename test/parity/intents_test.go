package parity

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// body is a JSON object.
type body = map[string]any

// pod is what an intent wants of a pod. Zero members are left out.
type pod struct {
	name, gpu, cloud, image, flavor string
	count, disk, volume, vcpus      int
	ports                           []string
	env                             map[string]string
}

// with fills in the members that the intent leaves to chance, so that no dialect's own defaults
// make another intent of it.
func (p pod) with() pod {
	if p.flavor == "" {
		p.gpu, p.count, p.cloud = or(p.gpu, "NVIDIA L4"), or(p.count, 1), or(p.cloud, "SECURE")
	}
	p.name, p.image, p.disk = or(p.name, "train-1"), or(p.image, "img:1"), or(p.disk, 20)
	if p.ports == nil {
		p.ports = []string{"22/tcp"}
	}
	if p.env == nil {
		p.env = map[string]string{"STAGE": "test"}
	}
	return p
}

func or[T string | int](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

// v2 writes the intent as a v2 body, v1 as a v1 body, graphql as an input.
func (p pod) v2() body {
	b := body{}
	put(b, "name", p.name, "image", p.image, "disk", p.disk, "cloud", p.cloud, "ports", p.ports, "env", p.env)
	if p.gpu != "" {
		b["gpu"] = body{"id": p.gpu, "count": p.count}
	}
	if p.flavor != "" {
		b["cpu"] = body{"id": p.flavor, "vcpuCount": p.vcpus}
	}
	if p.volume > 0 {
		b["mounts"] = body{"persistent": body{"size": p.volume, "path": "/workspace"}}
	}
	return b
}

func (p pod) v1() body {
	b := body{}
	put(b, "name", p.name, "imageName", p.image, "containerDiskInGb", p.disk, "cloudType", p.cloud, "ports", p.ports, "env", p.env, "volumeInGb", p.volume)
	if p.gpu != "" {
		b["gpuTypeIds"], b["gpuCount"] = []string{p.gpu}, p.count
	}
	if p.flavor != "" {
		b["computeType"], b["cpuFlavorIds"], b["vcpuCount"] = "CPU", []string{p.flavor}, p.vcpus
	}
	return b
}

func (p pod) graphql() body {
	b := body{}
	put(b, "name", p.name, "imageName", p.image, "containerDiskInGb", p.disk, "cloudType", p.cloud, "volumeInGb", p.volume)
	if p.ports != nil {
		b["ports"] = strings.Join(p.ports, ",")
	}
	if p.env != nil {
		env := []body{}
		for _, name := range slices.Sorted(maps.Keys(p.env)) {
			env = append(env, body{"key": name, "value": p.env[name]})
		}
		b["env"] = env
	}
	if p.gpu != "" {
		b["gpuTypeId"], b["gpuCount"] = p.gpu, p.count
	}
	if p.flavor != "" {
		b["instanceId"] = fmt.Sprintf("%s-%d-%d", p.flavor, p.vcpus, 2*p.vcpus)
	}
	return b
}

// put sets the members that have a value.
func put(b body, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		switch v := pairs[i+1].(type) {
		case string:
			if v == "" {
				continue
			}
		case int:
			if v == 0 {
				continue
			}
		case []string:
			if v == nil {
				continue
			}
		case map[string]string:
			if v == nil {
				continue
			}
		}
		b[pairs[i].(string)] = pairs[i+1]
	}
}

// intent is one thing a person wants, whatever interface they have.
type intent struct {
	name string
	// has is the pod there is before, nil for none; stopped that it is not
	// running.
	has     *pod
	stopped bool
	// do is "create", "patch" or a verb of the pod's life; want is what create
	// and patch are about.
	do   string
	want pod
	// denied lists the policies that must refuse.
	denied []string
}

// intents is the table. The policies are those of the two functions below.
func intents() []intent {
	create := func(name string, p pod, denied ...string) intent {
		p = p.with()
		return intent{name: "create " + name, do: "create", want: p, denied: denied}
	}
	plain := pod{volume: 20}.with()
	patch := func(name string, change pod, denied ...string) intent {
		return intent{name: "patch " + name, has: &plain, stopped: true, do: "patch", want: change, denied: denied}
	}
	life := func(do string, p pod, stopped bool, denied ...string) intent {
		p = p.with()
		return intent{name: fmt.Sprintf("%s %d of %s, disk %d", do, p.count, p.gpu, p.disk), has: &p, stopped: stopped, do: do, denied: denied}
	}
	const rtx4090, a5000, h100 = "NVIDIA GeForce RTX 4090", "NVIDIA RTX A5000", "NVIDIA H100 80GB HBM3"
	rogue := pod{gpu: h100}.with()
	return []intent{
		create("plain", pod{}),
		create("the other type", pod{gpu: rtx4090}),
		create("two cheap ones", pod{gpu: a5000, count: 2}),
		create("on the community cloud", pod{cloud: "COMMUNITY"}),
		create("two on the community cloud", pod{cloud: "COMMUNITY", count: 2}),
		create("of a forbidden, dear type", pod{gpu: h100}, "gpu_allow_list", "price_ceiling"),
		create("of a forbidden, cheap type", pod{gpu: "NVIDIA A40"}, "gpu_allow_list"),
		create("of two dear ones", pod{gpu: rtx4090, count: 2}, "price_ceiling"),
		create("of three", pod{gpu: a5000, count: 3}, "gpu_count", "price_ceiling"),
		create("of eight", pod{gpu: h100, count: 8}, "gpu_allow_list", "gpu_count", "price_ceiling"),
		create("with the largest disk", pod{disk: 100}),
		create("with a larger disk", pod{disk: 101}, "disk"),
		create("of the team's image", pod{image: "ghcr.io/acme/train:2"}),
		create("of another image", pod{image: "ghcr.io/evil/train:2"}, "images"),
		create("of the latest image", pod{image: "img:latest"}, "images"),
		create("with web and shell", pod{ports: []string{"8888/http", "22/tcp"}}),
		create("with a forbidden port", pod{ports: []string{"22/tcp", "9999/tcp"}}, "ports"),
		create("with an environment", pod{env: map[string]string{"A": "1", "B": "x y"}}),
		create("with a forbidden variable", pod{env: map[string]string{"AWS_REGION": "eu"}}, "env_rules"),
		create("with another name", pod{name: "Train"}, "naming"),
		create("with the largest volume", pod{volume: 50}),
		create("with a larger volume", pod{volume: 60}, "storage"),
		create("with everything wrong", pod{name: "X", gpu: h100, count: 3, disk: 200, image: "evil", ports: []string{"9999/tcp"}, env: map[string]string{"AWS_X": "1"}, volume: 70},
			"disk", "env_rules", "gpu_allow_list", "gpu_count", "images", "naming", "ports", "price_ceiling", "storage"),
		create("without GPU", pod{flavor: "cpu3c", vcpus: 2}),
		create("without GPU, port", pod{flavor: "cpu3c", vcpus: 2, ports: []string{"9999/tcp"}}, "ports"),
		create("without GPU, dear", pod{flavor: "cpu3c", vcpus: 32}, "price_ceiling"),

		patch("the name", pod{name: "train-2"}),
		patch("to a forbidden name", pod{name: "TRAIN"}, "naming"),
		patch("the image", pod{image: "ghcr.io/acme/train:3"}),
		patch("to a forbidden image", pod{image: "ghcr.io/evil/train:3"}, "images"),
		patch("the disk", pod{disk: 100}),
		patch("to a larger disk", pod{disk: 101}, "disk"),
		patch("the ports", pod{ports: []string{"8888/http"}}),
		patch("to a forbidden port", pod{ports: []string{"9999/tcp"}}, "ports"),
		patch("the environment", pod{env: map[string]string{"A": "2"}}),
		patch("to a forbidden variable", pod{env: map[string]string{"A": "2", "AWS_X": "1"}}, "env_rules"),
		patch("the volume", pod{volume: 50}),
		patch("to a larger volume", pod{volume: 51}, "storage"),
		{name: "patch what is forbidden already", has: &rogue, stopped: true, do: "patch", want: pod{disk: 30}, denied: []string{"gpu_allow_list", "price_ceiling"}},

		life("start", pod{}, true),
		life("start", pod{gpu: h100}, true, "gpu_allow_list", "price_ceiling"),
		life("start", pod{gpu: rtx4090, count: 2}, true, "price_ceiling"),
		life("start", pod{disk: 150}, true, "disk"),
		life("restart", pod{}, false),
		life("restart", pod{gpu: h100}, false, "gpu_allow_list", "price_ceiling"),
		life("stop", pod{gpu: h100}, false),
		life("delete", pod{gpu: h100}, false),
	}
}

// libraryPolicies is the team's policies from the library.
const libraryPolicies = `    policies:
      - {policy: gpu_allow_list, params: {gpus: ["NVIDIA GeForce RTX 4090", "NVIDIA L4", "NVIDIA RTX A5000"]}}
      - {policy: gpu_count, params: {max_per_pod: 2}}
      - {policy: price_ceiling, params: {max_usd_per_hour: 0.8}}
      - {policy: disk, params: {max_gb: 100}}
      - {policy: images, params: {allow: [docker.io/library, ghcr.io/acme]}}
      - {policy: ports, params: {deny: [9999/tcp]}}
      - {policy: env_rules, params: {forbidden: ["AWS_*"]}}
      - {policy: naming, params: {pattern: "[a-z0-9-]+"}}
      - {policy: storage, params: {allow_persistent: true, max_persistent_gb: 50}}
`

// ownPolicies is the same rules as an organisation would write them, a file for
// each: package own_<name>.
func ownPolicies(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, rule := range map[string]string{
		"gpu_allow_list": `not pod.gpu.id in {"NVIDIA GeForce RTX 4090", "NVIDIA L4", "NVIDIA RTX A5000"}`,
		"gpu_count":      `pod.gpu.count > 2`,
		"price_ceiling":  `input.cost.usd_per_hour > 0.8`,
		"disk":           `pod.disk > 100`,
		"images":         `not regex.match("^(ghcr\\.io/acme/.*|img):[0-9]+$", pod.image)`,
		"ports":          `"9999/tcp" in pod.ports`,
		"env_rules":      `some name, _ in pod.env; startswith(name, "AWS_")`,
		"naming":         `not regex.match("^[a-z0-9-]+$", pod.name)`,
		"storage":        `pod.mounts.persistent.size > 50`,
	} {
		text := fmt.Sprintf("package policies.own_%s\n\npod := input.resource.after\n\ndeny contains \"no\" if {\n\tinput.request.settles\n\t%s\n}\n", name, rule)
		if name == "gpu_allow_list" {
			text = strings.Replace(text, "input.request.settles", "input.request.settles\n\tpod.gpu", 1)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".rego"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// doorsConfiguration is the configuration with other policies and with classes.
func doorsConfiguration(policies string) string {
	before, rest, _ := strings.Cut(configuration, "    policies:\n")
	_, after, _ := strings.Cut(rest, "\n    teams:")
	return before + policies +
		`    classes:
      - {id: creates, operations: [createPod], limits: {minute: 100}}
      - {id: changes, operations: [updatePod, deletePod], per: team, cost: 2, limits: {hour: 100}}
      - {id: actions, operations: [podAction], per: org, cost: 3, limits: {day: 100}}
    limits: {hour: 5000}
    teams:` + after
}
