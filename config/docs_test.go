package config_test

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config"
)

var update = flag.Bool("update", false, "rewrite docs/configuration.md")

func TestThePageOfSettingsIsCurrent(t *testing.T) {
	const page = "../docs/configuration.md"
	got := docs()
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/configuration.md (-want +got), make golden rewrites it:\n%s", diff)
	}
}

// TestEverySettingHasADescription: in the schema, and so in the page.
func TestEverySettingHasADescription(t *testing.T) {
	b, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(b, &schema); err != nil {
		t.Fatal(err)
	}
	nodes := 0
	var walk func(path string, node map[string]any)
	walk = func(path string, node map[string]any) {
		if _, reference := node["maxProperties"]; reference { // the members of a secret are described with it
			return
		}
		properties, _ := node["properties"].(map[string]any)
		for name, p := range properties {
			p := p.(map[string]any)
			nodes++
			if text, _ := p["description"].(string); text == "" {
				t.Errorf("%s.%s has no description", path, name)
			}
			walk(path+"."+name, p)
		}
		for _, inner := range []string{"items", "additionalProperties"} {
			if p, ok := node[inner].(map[string]any); ok {
				walk(path+"[]", p)
			}
		}
	}
	walk("", schema)
	if nodes < 200 {
		t.Errorf("the schema has only %d nodes", nodes)
	}
}
