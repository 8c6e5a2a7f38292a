package deploy_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

const module = "deploy/terraform"

// blocks returns the blocks of the Terraform module by kind and labels, as in
// "resource.helm_release.gateway"; those without labels have their kind alone.
func blocks(t *testing.T) map[string]*hclsyntax.Block {
	t.Helper()
	names, err := filepath.Glob(root + module + "/*.tf")
	if err != nil || len(names) == 0 {
		t.Fatalf("%s has no files: %v", module, err)
	}
	all := make(map[string]*hclsyntax.Block)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(hclwrite.Format(text)), string(text)); diff != "" {
			t.Errorf("%s is not formatted (-want +got):\n%s", name, diff)
		}
		file, faults := hclparse.NewParser().ParseHCL(text, name)
		if faults.HasErrors() {
			t.Fatal(faults)
		}
		for _, b := range file.Body.(*hclsyntax.Body).Blocks {
			key := strings.Join(append([]string{b.Type}, b.Labels...), ".")
			if all[key] != nil {
				t.Errorf("%s is declared twice: %s", key, b.DefRange())
			}
			all[key] = b
		}
	}
	return all
}

// references returns the names that a block refers to, as in "var.name" and
// "helm_release.gateway".
func references(t *testing.T, b *hclsyntax.Block) (names []string) {
	t.Helper()
	faults := hclsyntax.VisitAll(b.Body, func(n hclsyntax.Node) hcl.Diagnostics {
		e, ok := n.(*hclsyntax.ScopeTraversalExpr)
		if !ok || len(e.Traversal) < 2 {
			return nil
		}
		if attr, ok := e.Traversal[1].(hcl.TraverseAttr); ok {
			names = append(names, e.Traversal.RootName()+"."+attr.Name)
		}
		return nil
	})
	if faults.HasErrors() {
		t.Fatal(faults)
	}
	return names
}

func TestTerraformNamesAreDeclared(t *testing.T) {
	t.Parallel()
	declared, used := map[string]bool{"path.module": true}, make(map[string]bool)
	for key, b := range blocks(t) {
		switch b.Type {
		case "variable":
			declared["var."+b.Labels[0]] = true
			if b.Body.Attributes["description"] == nil || b.Body.Attributes["type"] == nil {
				t.Errorf("%s has no description or no type", key)
			}
		case "resource":
			declared[b.Labels[0]+"."+b.Labels[1]] = true
		case "locals":
			for name := range b.Body.Attributes {
				declared["local."+name] = true
			}
		case "output":
			if b.Body.Attributes["description"] == nil {
				t.Errorf("%s has no description", key)
			}
		}
		for _, name := range references(t, b) {
			// A variable's own validation is no use of it.
			used[name] = used[name] || b.Type != "variable"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !declared[name] {
			t.Errorf("%s is used and not declared", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if (strings.HasPrefix(name, "var.") || strings.HasPrefix(name, "local.")) && !used[name] {
			t.Errorf("%s is declared and not used", name)
		}
	}
}

func TestTerraformPinsProviders(t *testing.T) {
	t.Parallel()
	all := blocks(t)
	settings := all["terraform"].Body
	if settings.Attributes["required_version"] == nil {
		t.Error("no version of Terraform is required")
	}
	pinned := make(map[string]bool)
	for name, attr := range settings.Blocks[0].Body.Attributes {
		value := eval(t, attr.Expr, nil)
		pinned[name] = strings.HasPrefix(value.GetAttr("version").AsString(), "~> ") && value.GetAttr("source").AsString() == "hashicorp/"+name
	}
	for key, b := range all {
		if b.Type != "resource" {
			continue
		}
		if provider, _, _ := strings.Cut(b.Labels[0], "_"); !pinned[provider] {
			t.Errorf("%s: the provider %s is not pinned", key, provider)
		}
	}
}

// The module's values for the chart fit the chart's schema, and become the resources that
// the caller asked for.
func TestTerraformValuesFitTheChart(t *testing.T) {
	t.Parallel()
	given := map[string]cty.Value{
		"namespace": cty.StringVal("gateways"),
		"image": cty.ObjectVal(map[string]cty.Value{
			"repository": cty.StringVal("images.example/tollgate"), "tag": cty.StringVal("v1.2.3"),
		}),
		"replicas":  cty.NumberIntVal(3),
		"config":    cty.StringVal("listen: 0.0.0.0:8080\n"),
		"redis_url": cty.StringVal("redis://redis:6379/0"),
		"secrets":   cty.MapVal(map[string]cty.Value{"ACME_PLATFORM_KEY": cty.StringVal("platform-canary")}),
		"values":    cty.ListVal([]cty.Value{cty.StringVal("service: {port: 8443}")}),
	}
	documents := chartValues(t, given)
	if len(documents) != 2 || documents[1] != "service: {port: 8443}" {
		t.Fatalf("the caller's own values are not the last: %q", documents)
	}
	ours := documents[0]
	if strings.Contains(ours, "canary") || strings.Contains(ours, "redis://") {
		t.Errorf("values of the chart have a secret: %s", ours)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(ours), &got); err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.CompileString("values.schema.json", read(t, chart+"/values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(got); err != nil {
		t.Errorf("the chart does not take these values: %#v", err)
	}
	annotations := got["podAnnotations"].(map[string]any)
	want := map[string]any{
		"image":          map[string]any{"repository": "images.example/tollgate", "tag": "v1.2.3", "digest": ""},
		"replicas":       3.0,
		"autoscaling":    map[string]any{"enabled": true, "minReplicas": 3.0, "maxReplicas": 8.0},
		"config":         "listen: 0.0.0.0:8080\n",
		"secret":         "tollgate",
		"podAnnotations": annotations,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	given["secrets"] = cty.MapVal(map[string]cty.Value{"ACME_PLATFORM_KEY": cty.StringVal("another-canary")})
	var later map[string]any
	if err := json.Unmarshal([]byte(chartValues(t, given)[0]), &later); err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(annotations, later["podAnnotations"]) {
		t.Error("gateways are not replaced when a secret changes")
	}
}

// The chart renders with these values, and the objects are valid.
func TestTerraformChartRenders(t *testing.T) {
	t.Parallel()
	tool(t, "helm")
	documents := chartValues(t, map[string]cty.Value{
		"namespace": cty.StringVal("tollgate"),
		"image": cty.ObjectVal(map[string]cty.Value{
			"repository": cty.StringVal("images.example/tollgate"), "digest": cty.StringVal("sha256:" + strings.Repeat("0", 64)),
		}),
		"max_replicas": cty.NumberIntVal(1),
		"config":       cty.StringVal("listen: 0.0.0.0:8080\nadmin: {listen: 0.0.0.0:8081}\n"),
		"redis_url":    cty.StringVal("redis://redis:6379/0"),
		"secrets":      cty.MapValEmpty(cty.String),
	})
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(documents[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	manifests := render(t, "--values", path)
	for _, want := range []string{"replicas: 2", "images.example/tollgate@sha256:0", "secretRef: {name: tollgate}", "checksum/secret: "} {
		if !strings.Contains(manifests, want) {
			t.Errorf("the manifests have no %q", want)
		}
	}
	for _, object := range objects(t, manifests) {
		if object["kind"] == "HorizontalPodAutoscaler" {
			t.Error("gateways are scaled where max_replicas is not above replicas")
		}
		validate(t, "deploy/terraform", object)
	}
	// The outputs name the chart's Services after the release.
	for _, want := range []string{"name: tollgate\n", "name: tollgate-admin\n"} {
		if !strings.Contains(manifests, want) {
			t.Errorf("no object has the %s", want)
		}
	}
}

// chartValues returns the values with which the module installs the chart, given
// those of its variables; the others have their defaults. The module's documents are
// JSON, which is YAML.
func chartValues(t *testing.T, given map[string]cty.Value) (documents []string) {
	t.Helper()
	all := blocks(t)
	scope := &hcl.EvalContext{
		Variables: map[string]cty.Value{
			"path": cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal(root + module)}),
			"var":  variables(t, all, given),
		},
		Functions: map[string]function.Function{
			"coalesce": stdlib.CoalesceFunc, "concat": stdlib.ConcatFunc, "jsonencode": stdlib.JSONEncodeFunc, "max": stdlib.MaxFunc,
			"merge": stdlib.MergeFunc, "yamlencode": stdlib.JSONEncodeFunc, "nonsensitive": stringFunc(func(s string) string { return s }),
			"sha256": stringFunc(func(s string) string {
				sum := sha256.Sum256([]byte(s))
				return hex.EncodeToString(sum[:])
			}),
		},
	}
	locals := make(map[string]cty.Value)
	for name, attr := range all["locals"].Body.Attributes {
		locals[name] = eval(t, attr.Expr, scope)
	}
	scope.Variables["local"] = cty.ObjectVal(locals)
	secret := all["resource.kubernetes_secret_v1.environment"].Body
	metadata := make(map[string]cty.Value)
	for name, attr := range secret.Blocks[0].Body.Attributes {
		metadata[name] = eval(t, attr.Expr, scope)
	}
	scope.Variables["kubernetes_secret_v1"] = cty.ObjectVal(map[string]cty.Value{
		"environment": cty.ObjectVal(map[string]cty.Value{"metadata": cty.TupleVal([]cty.Value{cty.ObjectVal(metadata)})}),
	})
	data := eval(t, secret.Attributes["data"].Expr, scope).AsValueMap()
	if got := data["REDIS_URL"]; !got.RawEquals(given["redis_url"]) {
		t.Errorf("REDIS_URL of the Secret is %#v", got)
	}
	release := all["resource.helm_release.gateway"].Body
	path := eval(t, release.Attributes["chart"].Expr, scope).AsString()
	if _, err := os.Stat(filepath.Join(path, "Chart.yaml")); err != nil {
		t.Errorf("there is no chart: %v", err)
	}
	for _, v := range eval(t, release.Attributes["values"].Expr, scope).AsValueSlice() {
		documents = append(documents, v.AsString())
	}
	return documents
}

// variables returns the values of the module's variables, converted to the types that
// they declare. Their validations are not evaluated.
func variables(t *testing.T, all map[string]*hclsyntax.Block, given map[string]cty.Value) cty.Value {
	t.Helper()
	values := make(map[string]cty.Value)
	for _, b := range all {
		if b.Type != "variable" {
			continue
		}
		name := b.Labels[0]
		kind, defaults, faults := typeexpr.TypeConstraintWithDefaults(b.Body.Attributes["type"].Expr)
		if faults.HasErrors() {
			t.Fatal(faults)
		}
		value, ok := given[name]
		if !ok {
			attr := b.Body.Attributes["default"]
			if attr == nil {
				t.Fatalf("%s has no value and no default", name)
			}
			value = eval(t, attr.Expr, nil)
		}
		if defaults != nil {
			value = defaults.Apply(value)
		}
		value, err := convert.Convert(value, kind)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		values[name] = value
	}
	return cty.ObjectVal(values)
}

// stringFunc returns a function of the language from a string to a string.
func stringFunc(f func(string) string) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.StringVal(f(args[0].AsString())), nil
		},
	})
}

func eval(t *testing.T, e hclsyntax.Expression, scope *hcl.EvalContext) cty.Value {
	t.Helper()
	value, faults := e.Value(scope)
	if faults.HasErrors() {
		t.Fatal(faults)
	}
	return value
}
