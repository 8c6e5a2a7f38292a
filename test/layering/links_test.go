package layering_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	fence  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	code   = regexp.MustCompile("`[^`\n]*`")
	link   = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	header = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	anchor = regexp.MustCompile(`<a id="([^"]+)">`)
	markup = regexp.MustCompile(`<[^>]*>|\]\([^)]*\)|[^\pL\pN _-]`)
)

// pages returns the Markdown files of the repository by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "ls-files", "--cached", "--others", "--exclude-standard", "*.md").Output()
	if err != nil {
		t.Skipf("no git checkout to read: %v", err)
	}
	all := make(map[string]string)
	for name := range strings.Lines(string(files)) {
		name = strings.TrimSuffix(name, "\n")
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			continue // deleted, and not committed yet
		}
		all[name] = fence.ReplaceAllString(string(text), "")
	}
	return all
}

// anchors returns the targets of a page's links: its headings as GitHub names them, a
// repeated one with a number, and explicit anchors.
func anchors(page string) map[string]bool {
	all := make(map[string]bool)
	for _, m := range header.FindAllStringSubmatch(page, -1) {
		slug := strings.ReplaceAll(markup.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), ""), " ", "-")
		name := slug
		for i := 1; all[name]; i++ {
			name = slug + "-" + strconv.Itoa(i)
		}
		all[name] = true
	}
	for _, m := range anchor.FindAllStringSubmatch(page, -1) {
		all[m[1]] = true
	}
	return all
}

// Links between files of the repository lead somewhere, to a heading if they name one.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := pages(t)
	seen := 0
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			to, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: %s: %v", name, m[1], err)
				continue
			}
			if to.IsAbs() {
				continue
			}
			seen++
			target := name
			if to.Path != "" {
				target = filepath.Join(filepath.Dir(name), to.Path)
			}
			if _, err := os.Stat(filepath.Join("..", "..", target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
				continue
			}
			if page, ok := all[target]; ok && to.Fragment != "" && !anchors(page)[to.Fragment] {
				t.Errorf("%s links to %s, a heading that does not exist", name, m[1])
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d links were found, want the hundreds there are", seen)
	}
}

// Every page is found from docs/README.md.
func TestPagesAreListed(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for name := range all {
		dir, page := filepath.Dir(name), strings.TrimPrefix(name, "docs/")
		if (dir == "docs" || dir == "docs/tasks") && page != "README.md" && !strings.Contains(all["docs/README.md"], "("+page+")") {
			t.Errorf("docs/README.md does not link to %s", name)
		}
	}
}
