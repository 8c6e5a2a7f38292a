package v1

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	emulator "github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/translate"
)

var update = flag.Bool("update", false, "rewrite the golden sections of testdata/*/*.txtar")

// golden is one file of testdata. Its inputs:
//
//	v1.request    method, path and body
//	v2.responses  the platform's answers, in order; see readScript
//	notes         optional: notes remembered before, "kind id json" lines
//	pick          optional: the one member of the answer to show, "a/b/c"
//
// and its outputs, rewritten with -update:
//
//	v2.requests   the calls made
//	v1.response   the answer
//	notes.after   the notes remembered afterwards
type golden struct {
	name, op string
	archive  *txtar.Archive
	result   result
	gate     *gate
}

func (g *golden) section(name string) string {
	for _, f := range g.archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func (g *golden) set(name, data string) {
	i := slices.IndexFunc(g.archive.Files, func(f txtar.File) bool { return f.Name == name })
	switch {
	case i >= 0 && data == "":
		g.archive.Files = slices.Delete(g.archive.Files, i, i+1)
	case i >= 0:
		g.archive.Files[i].Data = []byte(data)
	case data != "":
		g.archive.Files = append(g.archive.Files, txtar.File{Name: name, Data: []byte(data)})
	}
}

var scriptLine = regexp.MustCompile(`^([a-z][A-Za-z]+)( \S+)? (\d{3}|lost)( @\w+)?$`)

// readScript reads the platform's answers: a line "operation [id] status
// [@fixture]" (status "lost" answers nothing), then JSON laid over the fixture.
func readScript(t *testing.T, text string) []answer {
	t.Helper()
	var script []answer
	var body strings.Builder
	var base any
	flush := func() {
		if len(script) == 0 {
			return
		}
		last := &script[len(script)-1]
		last.body = base
		if strings.TrimSpace(body.String()) != "" {
			last.body = merge(base, mustJSON(body.String()))
		}
		body.Reset()
		base = nil
	}
	for line := range strings.Lines(text) {
		m := scriptLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			body.WriteString(line)
			continue
		}
		flush()
		status, _ := strconv.Atoi(m[3])
		script = append(script, answer{op: m[1], id: strings.TrimSpace(m[2]), status: status})
		if m[4] != "" {
			base = fixture(strings.TrimPrefix(m[4], " @"))
		}
	}
	flush()
	return script
}

func runGolden(t *testing.T, path string) *golden {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g := &golden{name: strings.TrimSuffix(filepath.Base(path), ".txtar"), archive: archive}
	g.gate = newGate(t, DefaultConfig(), readScript(t, g.section("v2.responses"))...)
	for line := range strings.Lines(g.section("notes")) {
		parts := strings.SplitN(strings.TrimSpace(line), " ", 3)
		g.gate.remember(t, parts[0], parts[1], parts[2])
	}
	target, body, _ := strings.Cut(g.section("v1.request"), "\n")
	method, rest, _ := strings.Cut(target, " ")
	path, _, _ = strings.Cut(rest, "?")
	g.op, _ = route(method, path)
	g.result = g.gate.do(t, target, body)
	for _, a := range g.gate.script {
		t.Errorf("%s: the call %s %s was not made", g.name, a.op, a.id)
	}
	return g
}

// requests writes the calls. Those of one operation in a row may have run at
// once, so they are sorted by id.
func (g *golden) requests() string {
	calls := slices.Clone(g.gate.calls)
	for i := 0; i < len(calls); {
		j := i
		for j < len(calls) && calls[j].op == calls[i].op {
			j++
		}
		slices.SortStableFunc(calls[i:j], func(a, b sent) int { return strings.Compare(a.id, b.id) })
		i = j
	}
	var out strings.Builder
	for _, call := range calls {
		fmt.Fprintln(&out, strings.TrimSpace(call.op+" "+call.id+" "+call.query))
		if call.body != nil {
			out.WriteString(indent(call.body))
		}
	}
	return out.String()
}

func (g *golden) response() string {
	var out strings.Builder
	fmt.Fprintln(&out, g.result.Status)
	if g.result.ContentType != "" {
		fmt.Fprintf(&out, "Content-Type: %s\n", g.result.ContentType)
	}
	for _, name := range []string{"Link", "Retry-After", "X-Tollgate-V2-Operation", "X-Legacy-Warning"} {
		for _, value := range g.result.Header.Values(name) {
			fmt.Fprintf(&out, "%s: %s\n", name, value)
		}
	}
	switch {
	case g.result.body != nil:
		body := g.result.body
		if pick := strings.TrimSpace(g.section("pick")); pick != "" {
			body = translate.At(body, strings.Split(pick, "/")...)
		}
		out.WriteString(indent(body))
	case len(g.result.Body) > 0:
		out.Write(bytes.TrimSpace(g.result.Body))
		out.WriteString("\n")
	}
	return out.String()
}

func (g *golden) notes(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for _, kind := range []string{translate.KindEndpoint, translate.KindPod, translate.KindTemplate} {
		notes, err := g.gate.store.List(t.Context(), "acme", kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range slices.Sorted(maps.Keys(notes)) {
			fmt.Fprintf(&out, "%s %s %s\n", kind, id, notes[id])
		}
	}
	return out.String()
}

func goldenFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	return files
}

func TestGolden(t *testing.T) {
	for _, path := range goldenFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			g := runGolden(t, path)
			if op, _, _ := strings.Cut(g.name, "."); op != g.op {
				t.Errorf("the file is named %s but calls %s", g.name, g.op)
			}
			g.published(t)
			outputs := []struct{ name, text string }{
				{"v2.requests", g.requests()}, {"v1.response", g.response()}, {"notes.after", g.notes(t)},
			}
			for _, out := range outputs {
				if *update {
					g.set(out.name, out.text)
				} else if diff := cmp.Diff(g.section(out.name), out.text); diff != "" {
					t.Errorf("%s (-want +got):\n%s", out.name, diff)
				}
			}
			if *update {
				if err := os.WriteFile(path, txtar.Format(g.archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// published holds the bodies that were sent against the platform's own description,
// unless it refuses one.
func (g *golden) published(t *testing.T) {
	t.Helper()
	for _, call := range g.gate.calls {
		body, err := json.Marshal(call.body)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range emulator.PublishedFaults(call.op, body) {
			t.Errorf("%s %s: %s", call.op, body, fault)
		}
	}
}
