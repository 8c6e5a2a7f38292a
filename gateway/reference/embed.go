package reference

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed assets
var assets embed.FS

// Path is where the page is, AccessPath where it asks what its reader's key may do,
// RunPath where the description of the run interface is, if that is served.
const (
	Path       = "/docs"
	AccessPath = "/docs/access"
	RunPath    = "/docs/run.json"
)

// policy lets the page run and fetch this gateway's content, and nothing else.
// Neither scripts nor styles are inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// File is one file of the reference.
type File struct {
	// Path is where it is served.
	Path   string
	Header http.Header
	// Body is read when it is first asked for.
	Body func() []byte
}

// Files returns the page and its parts, the page first.
func Files() ([]File, error) {
	files := []File{{Path: Path, Body: asset("docs.html"), Header: http.Header{
		"Content-Type":            {"text/html; charset=utf-8"},
		"Content-Security-Policy": {policy},
		"Referrer-Policy":         {"no-referrer"},
		"Cache-Control":           {"no-cache"},
	}}}
	entries, err := fs.ReadDir(assets, "assets")
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	for _, e := range entries {
		name, compressed := strings.CutSuffix(e.Name(), ".gz")
		contentType, served := contentTypes[path.Ext(name)]
		if !served {
			continue
		}
		h := http.Header{"Content-Type": {contentType}, "Cache-Control": {"max-age=300"}}
		if compressed {
			h.Set("Content-Encoding", "gzip")
		}
		files = append(files, File{Path: Path + "/" + name, Header: h, Body: asset(e.Name())})
	}
	return files, nil
}

// asset returns a function that reads an embedded file, once.
func asset(name string) func() []byte {
	return sync.OnceValue(func() []byte {
		body, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // it is embedded
		}
		return body
	})
}

// contentTypes are those of the files beside the page.
var contentTypes = map[string]string{
	".js":  "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
}
