package operator_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// judged loads a file as the program does; variables that it names have some value.
func judged(name string) (*config.Loaded, error) {
	secrets := map[string]string{"ADMIN_TOKEN": "q8Zr-Vw2n-admin-secret-2"}
	return config.Load(name, config.Sources{
		Env: func(name string) (string, bool) {
			if s, ok := secrets[name]; ok {
				return s, true
			}
			return "pk-secret-" + name, true
		},
	}, operator.Validator{})
}

// Each file has one fault that only the engines know of, named in its first line. The
// settings by themselves have none.
func TestJudge(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/validate/*.bad.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(data), "\n")
		want, ok := strings.CutPrefix(first, "# want: ")
		_, err = judged(name)
		if !ok || err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), name+":") {
			t.Errorf("%s: %v\nwant %s", name, err, want)
		}
		if _, err := config.Load(name, config.Sources{WithoutSecrets: true}, nil); err != nil {
			t.Errorf("%s belongs to the tests of config, which sees its fault: %v", name, err)
		}
	}
}

// Files that config takes are taken by the engines, too.
func TestJudgeTakesGoodFiles(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("../../config/testdata/*.good.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		if _, err := config.Load(name, config.Sources{WithoutSecrets: true}, operator.Validator{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Warnings of the engines have their place in the file.
func TestJudgeWarns(t *testing.T) {
	t.Parallel()
	const text = `platform: {base_url: "https://platform.test"}
redis: {embedded: true}
decisions: {mask: [/input/nothing]}
orgs:
  - id: acme
    credential: {env: ACME_KEY}
    budget: {per_day: 5}
    policies: [{policy: run_limits, params: {max_tokens: 9}}]
  - id: globex
    credential: {env: GLOBEX_KEY}
    alerts: {thresholds: [50]}
`
	l, err := config.Parse("x.yaml", []byte(text), config.Sources{WithoutSecrets: true}, operator.Validator{})
	if err != nil {
		t.Fatal(err)
	}
	got := errors.Join(l.Warnings(time.Now())...).Error()
	for _, want := range []string{
		"x.yaml:3:20: decisions.mask[0]: member /input/nothing does not exist in any event", "x.yaml:5:5: orgs[0]: has budgets, but the embedded Redis loses",
		"orgs[0].policies[0].policy: run_limits has no effect because platform.run_url is not set", "orgs[1].alerts.thresholds: requires budgets",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the warnings are\n%s\nwant %s", got, want)
		}
	}
}
