package layering_test

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// parse reads the named files of a package.
func parse(t *testing.T, dir string, names []string) map[string]*ast.File {
	t.Helper()
	files := make(map[string]*ast.File, len(names))
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = f
	}
	return files
}

func TestPackagesAreDocumented(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		if len(p.GoFiles) == 0 {
			continue // tests only
		}
		files := parse(t, p.Dir, p.GoFiles)
		where := "doc.go"
		for name, f := range files {
			// Commands may say it where they start.
			if f.Name.Name == "main" && name == "main.go" && f.Doc != nil {
				where = name
			}
		}
		f := files[where]
		if f == nil || f.Doc == nil {
			t.Errorf("%s has no package comment in doc.go", p.ImportPath)
			continue
		}
		want := "Package " + f.Name.Name + " "
		if f.Name.Name == "main" {
			want = "Command " + filepath.Base(p.ImportPath) + " "
		}
		if !strings.HasPrefix(f.Doc.Text(), want) {
			t.Errorf("the package comment of %s does not begin with %q", p.ImportPath, want)
		}
	}
}

// Order by accident: init functions, and imports for their effects. Two imports bring data or syntax and run nothing of note.
func TestNothingHappensAtImport(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		for name, f := range parse(t, p.Dir, slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles)) {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s/%s has an init function", p.ImportPath, name)
				}
			}
			for _, imp := range f.Imports {
				if imp.Name != nil && imp.Name.Name == "_" && !slices.Contains([]string{`"embed"`, `"time/tzdata"`}, imp.Path.Value) {
					t.Errorf("%s/%s imports %s for its effects", p.ImportPath, name, imp.Path.Value)
				}
			}
		}
	}
}

// Bytes from callers are decoded by gateway/strictjson. encoding/json takes duplicate and case-variant names, and a field named by one
// reader of the request and overwritten for the next is how rules are dodged. The path of requests is every package that imports the chain,
// and the packages that the chain hands a caller's bytes to.
func TestRequestPathDecodesJSONStrictly(t *testing.T) {
	t.Parallel()
	handed := []string{"gateway/filter", "gateway/identity", "gateway/route"}
	// Files that read back records that a gateway has written to Redis or sealed, and operators' files and drafts.
	own := map[string]bool{
		"gateway/decisions/archiver.go": true, "gateway/decisions/refusals.go": true, "gateway/envoy/merge.go": true, "gateway/envoy/registry.go": true,
		"gateway/filter/cursor.go": true, "gateway/filter/intent.go": true, "gateway/idempotency/tracker.go": true, "gateway/operator/draftrows.go": true,
		"gateway/operator/drafts.go": true, "gateway/operator/fleet.go": true, "gateway/operator/revisions.go": true,
	}
	for _, p := range list(t) {
		if strings.HasPrefix(p.ImportPath, "test/") || !slices.Contains(handed, p.ImportPath) && !slices.Contains(p.Imports, "gateway/filter") {
			continue
		}
		for name, f := range parse(t, p.Dir, p.GoFiles) {
			file := p.ImportPath + "/" + name
			calls := loose(f)
			if len(calls) > 0 && !own[file] {
				t.Errorf("%s decodes with json.%s: decode with gateway/strictjson, or list the file here if it reads nothing but the gateway's own records", file, calls[0])
			}
			if len(calls) > 0 {
				delete(own, file)
			}
		}
	}
	for file := range own {
		t.Errorf("%s does not decode with encoding/json any more: delete it here", file)
	}
}

// loose returns the functions and types of encoding/json with which a file decodes, whatever name it imports that by.
func loose(f *ast.File) []string {
	local := ""
	for _, imp := range f.Imports {
		if imp.Path.Value == `"encoding/json"` {
			local = "json"
			if imp.Name != nil {
				local = imp.Name.Name
			}
		}
	}
	var found []string
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if ok && local != "" && x.Name == local && slices.Contains([]string{"Unmarshal", "NewDecoder", "Decoder"}, sel.Sel.Name) {
			found = append(found, sel.Sel.Name)
		}
		return true
	})
	return found
}

func TestLooseDecodingIsFound(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]int{
		`import "encoding/json"; var _ = json.Unmarshal`:                               1,
		`import "encoding/json"; func f(r io.Reader) { json.NewDecoder(r).Decode(v) }`: 1,
		`import j "encoding/json"; var _ = j.Unmarshal`:                                1,
		`import "encoding/json"; var _ = json.Marshal`:                                 0,
		`import json "gateway/strictjson"; var _ = json.Unmarshal`:                     0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "p.go", "package p; "+source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := loose(f); len(got) != want {
			t.Errorf("%s: %q, want %d", source, got, want)
		}
	}
}

// Phrases that read translated, and metaphors that were renamed to plain words; docs/vocabulary.md has the words instead.
func TestLanguage(t *testing.T) {
	t.Parallel()
	phrases := regexp.MustCompile(`(?i)\btells? whether\b|\btakes? a restart\b|\bno answer was had\b|\b(has|have) it read again\b|\bin spite of\b|` +
		`\bwhose they are\b|\bturns in [0-9%]|\bwants? a text\b|\bsomebody\b|\b(stageplay|understudy|dimmer|farewell|purse|spoil(s|ed)?)\b`)
	files, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "ls-files", "*.go", "*.md", "*.rego", "*.lua", "*.yaml").Output()
	if err != nil {
		t.Skipf("no git checkout to read: %v", err)
	}
	for name := range strings.Lines(string(files)) {
		name = strings.TrimSuffix(name, "\n")
		if name == "test/layering/house_test.go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if found := phrases.Find(line); found != nil {
				t.Errorf("%s:%d: %q", name, i+1, found)
			}
		}
	}
}
