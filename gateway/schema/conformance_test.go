package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// published is the platform's own machine description, kept beside the project.
const published = "../shared/reference/v2.openapi.json"

// difference is something only one of the two descriptions says.
type difference struct{ added, removed, reason string }

// deliberate lists every way in which our description differs from the
// published one on purpose, as patterns over the facts below. Text made for
// people (titles, descriptions, summaries) is not compared: it is ours.
func deliberate() []difference {
	return []difference{
		{
			added:  `^schemas/BaseContainerConfig/properties/(cmd|entrypoint)/`,
			reason: "a newer description has the command word by word in every container",
		},
		{
			added:  `^GET /v2/serverless/{id}/builds`,
			reason: "a newer description has builds",
		},
		{added: `^schemas/(Build|BuildStatus|ListEndpointBuildsResponse|Pagination)/`, reason: "a newer description has builds"},
		{added: `^schemas/CreateClusterRequest/allOf/1/properties/templateId/`, reason: "a newer description makes clusters by template"},
		{added: `^POST /v2/clusters response 404 `, reason: "a template that nobody has"},
		{added: `^schemas/CreateRegistryRequest/properties/\w+/maxLength = `, reason: "a newer description bounds the members of a login"},
		{added: `^schemas/\w+BillingAmounts/properties/\w*feeAmount/deprecated = true$|^schemas/BillingAmounts/properties/serverlessFeeAmount/deprecated = true$`, reason: "a newer description has no fees"},
		{
			added:  `^schemas/CreateGpuConfig/allOf/1/properties/(minRamPerGpu|minVcpuCountPerGpu)/`,
			reason: "placement can ask for host memory and CPUs by contract",
		},
		{added: `^schemas/PodGpu/`, reason: "a pod's GPU block tells its share of the host; a new schema, because requests are built from GpuConfig"},
		{
			added:   `^schemas/Pod/allOf/1/properties/gpu/allOf/0/\$ref = "#/components/schemas/PodGpu"$`,
			removed: `^schemas/Pod/allOf/1/properties/gpu/allOf/0/\$ref = "#/components/schemas/GpuConfig"$`,
			reason:  "see PodGpu",
		},
		{
			added:   `^schemas/CreateEndpointRequest/allOf/1/then/required/name$`,
			removed: `^schemas/CreateEndpointRequest/allOf/2/required/(name|type)$`,
			reason:  "clients may leave the type out, and the name beside templateId; the platform decides",
		},
		{
			added:  `^schemas/CreateEndpointRequest/allOf/2/properties/type/default = "QUEUE"$`,
			reason: "what the platform makes of an endpoint without a type, for policies to judge",
		},

		{added: `^schemas/List\w+Response/x-go-name = `, reason: "oapi-codegen calls the answer of an operation so, too: the types must have other names"},
		{
			added:  `^((GET|POST) /v2/account/secrets|(GET|PATCH|DELETE) /v2/account/secrets/{id}|schemas/\w*Secrets?\w*/|schemas/ListSecretsResponse/|tag Secrets$)`,
			reason: "secrets came after the description that is kept beside the project",
		},
		{
			added:  `^(\w+ /v2/sandboxes(/{id}(/exec|/logs)?)? |schemas/\w*Sandbox\w*/|tag Sandboxes$)`,
			reason: "sandboxes are in the platform's documentation pages alone",
		},
		{added: `^GET /v2/openapi.json `, reason: "the description itself is served, and missing from the published one"},
		{added: `^\S+ \S+ response 413 `, reason: "bodies over 102400 bytes are refused everywhere"},
		{added: `^\S+ \S+ response 405 `, reason: "the published component for a wrong method is attached to no operation"},
		{added: `^\S+ \S+ response 402 `, reason: "balance (pods, by contract) and budgets (whatever costs money)"},
		{added: `^(GET|POST) /v2/registries/delegations response 40[13] `, reason: "every operation needs a credential"},
		{added: `^DELETE /v2/registries/delegations/{id} response 40[13] `, reason: "every operation needs a credential"},
		{added: `^POST /v2/registries/delegations response (400|422) `, reason: "bodies are decoded strictly and held against their schema"},
		{added: `^PUT /v2/account/ssh-keys response 400 `, reason: "bodies are decoded strictly, and a key must not stand in the set twice"},
		{added: `^GET /v2/catalog/(gpus|cpus)(/{id})? response (400|422) `, reason: "rules between query parameters, told in prose only"},
		{added: `^(GET|POST|PATCH|DELETE) /v2/clusters\S* response \S+ header RateLimit(-Policy)?$`, reason: "rate headers are on every authenticated response"},
		{added: `^(PATCH|DELETE) /v2/pods/{id} response 409 header RateLimit(-Policy)?$`, reason: "rate headers are on every authenticated response"},

		{added: `^\S+ \S+ path (id|workerId) schema/pattern = `, reason: "ids become part of a path that is rebuilt, so their alphabet is closed"},
		{removed: `^GET \S+/logs header Last-Event-ID schema/format = "date-time"$`, reason: "the cursor is opaque: events carry a time with a suffix"},
		{added: `^GET /v2/(pods|serverless|serverless/{id}/releases|templates) query (cursor|limit) `, reason: "lists in pages, which the published description does not have yet"},
		{added: `^schemas/List(Pods|Endpoints|EndpointReleases|Templates)Response/(properties|required)/pagination\b`, reason: "likewise"},
		{added: `^schemas/(Pagination|PodList|TemplateList)/`, reason: "likewise, and the lists without pages"},
		{
			added:   `^GET /v2/(clusters/{id}/pods|catalog/templates) response 200 \S+/\$ref = "#/components/schemas/(Pod|Template)List"$`,
			removed: `^GET /v2/(clusters/{id}/pods|catalog/templates) response 200 \S+/\$ref = "#/components/schemas/List(Pods|Templates)Response"$`,
			reason:  "likewise",
		},
		{added: `^tag (Clusters|Meta)$`, reason: "two groups without an entry in the published list"},
	}
}

func TestConformance(t *testing.T) {
	theirs := facts(t, readPublished(t))
	var doc any
	if err := json.Unmarshal(load(t).Document(), &doc); err != nil {
		t.Fatal(err)
	}
	ours := facts(t, doc)
	if len(theirs) < 2000 {
		t.Fatalf("only %d facts found in the published description, the comparison is broken", len(theirs))
	}
	used := make(map[string]bool)
	added := matcher(used, func(d difference) string { return d.added })
	removed := matcher(used, func(d difference) string { return d.removed })
	for fact := range ours {
		if !theirs[fact] && !added(fact) {
			t.Errorf("only in ours: %s", fact)
		}
	}
	for fact := range theirs {
		if !ours[fact] && !removed(fact) {
			t.Errorf("only in the published one: %s", fact)
		}
	}
	for _, d := range deliberate() {
		for _, pattern := range []string{d.added, d.removed} {
			if pattern != "" && !used[pattern] {
				t.Errorf("the difference %s (%s) does not exist any more", pattern, d.reason)
			}
		}
	}
}

// matcher returns a function that looks a fact up on one side of the table and
// notes the pattern it found.
func matcher(used map[string]bool, side func(difference) string) func(fact string) bool {
	var patterns []*regexp.Regexp
	for _, d := range deliberate() {
		if p := side(d); p != "" {
			patterns = append(patterns, regexp.MustCompile(p))
		}
	}
	return func(fact string) bool {
		for _, p := range patterns {
			if p.MatchString(fact) {
				used[p.String()] = true
				return true
			}
		}
		return false
	}
}

func readPublished(t *testing.T) any {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, published))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no published description at %s beside the project: nothing to compare with", published)
	}
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// facts turns a description into a set of lines, one for each thing it says.
func facts(t *testing.T, doc any) map[string]bool {
	t.Helper()
	f := &factFinder{doc: doc, found: make(map[string]bool)}
	for name, s := range f.members("components", "schemas") {
		f.flatten("schemas/"+name, s)
	}
	tags, _ := f.get("tags").([]any)
	for _, tag := range tags {
		f.say("tag %v", member(tag, "name"))
	}
	f.flatten("version", member(f.get("info"), "version"))
	f.flatten("servers", f.get("servers"))
	f.flatten("security", f.get("security"))
	for path, item := range f.members("paths") {
		operations, _ := item.(map[string]any)
		for method, op := range operations {
			if method == "parameters" {
				continue
			}
			f.operation(strings.ToUpper(method)+" "+path, op, operations["parameters"])
		}
	}
	return f.found
}

type factFinder struct {
	doc   any
	found map[string]bool
}

func (f *factFinder) say(format string, args ...any) { f.found[fmt.Sprintf(format, args...)] = true }

func (f *factFinder) get(path ...string) any {
	v := f.doc
	for _, p := range path {
		v = member(v, p)
	}
	return v
}

func (f *factFinder) members(path ...string) map[string]any {
	m, _ := f.get(path...).(map[string]any)
	return m
}

// deref follows a reference to a component other than a schema.
func (f *factFinder) deref(v any) any {
	ref, ok := member(v, "$ref").(string)
	if !ok {
		return v
	}
	return f.get(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

func (f *factFinder) operation(name string, op, shared any) {
	f.say("%s operationId %v", name, member(op, "operationId"))
	f.flatten(name+" tags", member(op, "tags"))
	for _, list := range []any{shared, member(op, "parameters")} {
		params, _ := list.([]any)
		for _, p := range params {
			p = f.deref(p)
			at := fmt.Sprintf("%s %v %v", name, member(p, "in"), member(p, "name"))
			for _, key := range []string{"required", "style", "explode", "schema"} {
				f.flatten(at+" "+key, member(p, key))
			}
		}
	}
	f.flatten(name+" body", member(op, "requestBody"))
	responses, _ := member(op, "responses").(map[string]any)
	for code, r := range responses {
		r = f.deref(r)
		f.say("%s response %s ", name, code)
		headers, _ := member(r, "headers").(map[string]any)
		for h := range headers {
			f.say("%s response %s header %s", name, code, h)
		}
		f.flatten(fmt.Sprintf("%s response %s content", name, code), member(r, "content"))
	}
}

// flatten lists the members under a node: scalars as values, lists of names as sets.
func (f *factFinder) flatten(path string, node any) {
	switch node := node.(type) {
	case map[string]any:
		said := false
		_, media := node["schema"]
		for name, v := range node {
			if media && name == "example" {
				continue // it is for people, too
			}
			isText := name == "description" || name == "title" || name == "summary"
			if _, ok := v.(string); isText && ok {
				continue
			}
			f.flatten(path+"/"+name, v)
			said = true
		}
		if !said {
			f.say("%s = {}", path)
		}
	case []any:
		for i, v := range node {
			if s, ok := v.(string); ok {
				f.say("%s/%s", path, s)
			} else {
				f.flatten(fmt.Sprintf("%s/%d", path, i), v)
			}
		}
	case nil:
	default:
		text, _ := json.Marshal(node) //nolint:errchkjson // it was just decoded
		f.say("%s = %s", path, text)
	}
}

func member(v any, name string) any {
	m, _ := v.(map[string]any)
	return m[name]
}
