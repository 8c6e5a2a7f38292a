package deploy_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// block is a fenced block of a page.
type block struct {
	// line is the line of its fence.
	line int
	// language is the word behind the fence: sh for commands, text for output.
	language string
	// reason says why the block is not run or checked. The page has it in a comment
	// above the block: <!-- not run: REASON -->.
	reason string
	text   string
	// output reports whether the block shows the output of the one above it.
	output bool
}

// fences reads the blocks of a page. A block may be indented, as one of a list is.
func fences(page string) (all []block) {
	fenced := regexp.MustCompile("(?sm)^( *)(?:<!-- not (?:run|checked): ([^\n]+?) -->\n *)?```(\\w*)[^\n]*\n(.*?)^ *```$")
	end := 0
	for _, at := range fenced.FindAllStringSubmatchIndex(page, -1) {
		part := func(i int) string { return page[max(at[2*i], 0):max(at[2*i+1], 0)] }
		text := regexp.MustCompile("(?m)^"+part(1)).ReplaceAllLiteralString(part(4), "")
		b := block{line: 1 + strings.Count(page[:at[8]], "\n") - 1, language: part(3), reason: part(2), text: text}
		if len(all) > 0 && b.language == "text" && strings.TrimSpace(page[end:at[0]]) == "" && all[len(all)-1].language == "sh" {
			b.output, b.reason = true, all[len(all)-1].reason
		}
		all, end = append(all, b), at[1]
	}
	return all
}

// documents returns the pages of the repository, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"README.md": "", "CONTRIBUTING.md": "", "SECURITY.md": ""}
	if err := fs.WalkDir(os.DirFS(root), "docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			all[path] = ""
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for path := range all {
		all[path] = read(t, path)
	}
	return all
}

// Every block of every page is run, shows output, is held by what reads its language, or
// says why not.
func TestPagesBlocks(t *testing.T) {
	t.Parallel()
	all, count := documents(t), make(map[string]int)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		for _, b := range fences(all[path]) {
			kind := held(t, path, b)
			count[kind]++
			if kind == "listed" {
				t.Logf("%s:%d: %s is not run: %s", path, b.line, b.language, b.reason)
			}
		}
	}
	t.Logf("blocks of pages: %d run, %d checked, %d output, %d listed", count["run"], count["checked"], count["output"], count["listed"])
	for _, kind := range []string{"run", "checked", "output"} {
		if count[kind] < 20 {
			t.Errorf("%d blocks are %s, want the many there are", count[kind], kind)
		}
	}
}

// held holds a block to what can be known of it, and returns which kind it is.
func held(t *testing.T, path string, b block) string {
	t.Helper()
	_, isRun := scenes()[path]
	switch {
	case b.output && b.reason == "":
		return "output"
	case b.language == "sh" && b.reason == "":
		if !isRun {
			t.Errorf("%s:%d: the page is not run", path, b.line)
		}
		return "run"
	case b.language == "sh":
		fed(t, path, b, "bash", "-n")
	case b.language == "json":
		if b.reason == "" && !json.Valid([]byte(b.text)) {
			t.Errorf("%s:%d: no JSON:\n%s", path, b.line, b.text)
		}
		return "checked"
	case b.language == "yaml" && b.reason == "":
		checkConfiguration(t, path, b)
		return "checked"
	case b.language == "yaml":
		var any any
		if err := yaml.Unmarshal([]byte(b.text), &any); err != nil {
			t.Errorf("%s:%d: %v", path, b.line, err)
		}
	case b.language == "rego" && b.reason == "":
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "shown.rego"), b.text)
		fed(t, path, b, binary.Path(t), "policy", "check", dir)
		return "checked"
	case b.language == "mermaid", b.output:
	case b.reason == "":
		t.Errorf("%s:%d: a block of %q is not run, and no comment above it says why", path, b.line, b.language)
	}
	return "listed"
}

// fed runs a program with the text of a block as its input.
func fed(t *testing.T, path string, b block, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = strings.NewReader(b.text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s:%d: %v\n%s%s", path, b.line, err, out, b.text)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkConfiguration has tollgate check the configuration that a block is a part of.
func checkConfiguration(t *testing.T, path string, b block) {
	t.Helper()
	text := strings.ReplaceAll(b.text, "<64 hexadecimal digits>", "...")
	for n := 0; strings.Contains(text, `sha256: "..."`); n++ {
		text = strings.Replace(text, `"..."`, `"`+strings.Repeat("123456789abcdef"[n:n+1], 64)+`"`, 1)
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		t.Errorf("%s:%d: %v", path, b.line, err)
		return
	}
	dir := t.TempDir()
	whole(t, dir, config)
	raw, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "tollgate.yaml"), string(raw))
	cmd := exec.CommandContext(t.Context(), binary.Path(t), "check", "--no-secrets", "-c", "tollgate.yaml")
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("%s:%d: %s\n%s", path, b.line, out.String(), raw)
	}
}

// whole completes the part of a configuration that a page shows: the members of an
// organisation may stand alone, and what every configuration needs may be left out.
func whole(t *testing.T, dir string, config map[string]any) {
	t.Helper()
	org := map[string]any{"id": "acme"}
	for _, member := range []string{"teams", "exceptions", "bundle", "keys", "key_files", "classes", "model_paths"} {
		if value, ok := config[member]; ok {
			org[member] = value
			delete(config, member)
		}
	}
	if list, ok := config["policies"].([]any); ok {
		org["policies"] = list
		delete(config, "policies")
	}
	orgs, _ := config["orgs"].([]any)
	if orgs == nil {
		orgs = []any{org}
	}
	for _, o := range orgs {
		completeOrg(t, dir, o.(map[string]any))
	}
	config["orgs"] = orgs
	if _, ok := config["platform"]; !ok {
		config["platform"] = map[string]any{"base_url": "https://api.platform.example", "run_url": "https://run.platform.example"}
	}
	if _, ok := config["redis"]; !ok {
		config["redis"] = map[string]any{"url": map[string]any{"env": "REDIS_URL"}}
	}
}

func completeOrg(t *testing.T, dir string, org map[string]any) {
	t.Helper()
	if _, ok := org["credential"]; !ok {
		org["credential"] = map[string]any{"env": "ACME_KEY"}
	}
	if _, ok := org["teams"]; !ok {
		org["teams"] = []any{map[string]any{"id": "research"}, map[string]any{"id": "platform"}}
	}
	if _, ok := org["keys"]; !ok {
		org["keys"] = []any{map[string]any{"id": "some", "sha256": strings.Repeat("e", 64)}}
	}
	files, _ := org["key_files"].([]any)
	for n, file := range files {
		path := filepath.Join(dir, file.(string))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, "- {id: of-file-"+string(rune('a'+n))+", sha256: \""+strings.Repeat(string(rune('a'+n)), 64)+"\"}\n")
	}
}
